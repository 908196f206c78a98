package evidence

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	grpcstatus "google.golang.org/grpc/status"
)

// scriptedConn is a connection with a fixed answer. It keeps what was written, and the deadline for reading.
type scriptedConn struct {
	net.Conn
	writeErr, deadlineErr, readErr error
	answer, sent                   string
	deadline                       time.Time
	// silent lets Read wait until the connection is closed.
	silent bool
	once   sync.Once
	closed chan struct{}
}

func (c *scriptedConn) Write(b []byte) (int, error) {
	c.sent += string(b)
	return len(b), c.writeErr
}

func (c *scriptedConn) SetReadDeadline(at time.Time) error {
	c.deadline = at
	return c.deadlineErr
}

func (c *scriptedConn) Read(b []byte) (int, error) {
	if c.silent {
		select {
		case <-c.closed:
			return 0, net.ErrClosed
		case <-time.After(20 * time.Second):
			return 0, errors.New("it was never closed")
		}
	}
	return copy(b, c.answer), c.readErr
}

func (c *scriptedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// TestGreeting: a server that ends a plain-text connection, answers as one that wants TLS, or with HTTP/1, is
// distinguished from one that answers, and every other error is passed on.
func TestGreeting(t *testing.T) {
	own := errors.New("own")
	const wants = "h:1 closes connections without TLS: is it https://h:1?"
	const other = "h:1 answers without HTTP/2, which etcd's client URLs speak: is it a peer URL, or another service?"
	for name, c := range map[string]struct {
		conn             *scriptedConn
		greeting, tlsToo string
	}{
		"it cannot be written to":    {&scriptedConn{writeErr: own, answer: "x"}, "own", ""},
		"no deadline can be set":     {&scriptedConn{deadlineErr: own, answer: "x"}, "own", ""},
		"it answers":                 {&scriptedConn{answer: "settings"}, "", ""},
		"it answers and ends":        {&scriptedConn{answer: "settings", readErr: io.EOF}, "", ""},
		"it answers and breaks":      {&scriptedConn{answer: "settings", readErr: own}, "", ""},
		"it closes the connection":   {&scriptedConn{readErr: io.EOF}, wants, wants},
		"it breaks the connection":   {&scriptedConn{readErr: own}, "own", ""},
		"an alert of TLS":            {&scriptedConn{answer: "\x15\x03\x01\x00\x02"}, wants, wants},
		"an alert of something else": {&scriptedConn{answer: "\x15\x04"}, "", ""},
		"a page that says so":        {&scriptedConn{answer: "HTTP/1.0 400\r\n\r\nto an HTTPS server"}, wants, wants},
		"a peer URL":                 {&scriptedConn{answer: "HTTP/1.1 400 Bad Request\r\n"}, other, other},
		"another service":            {&scriptedConn{answer: "<!DOCTYPE HTML>"}, other, other},
	} {
		c.conn.closed = make(chan struct{})
		begin := time.Now()
		err := greeting(t.Context(), c.conn, "h:1", time.Minute)
		if text(err) != c.greeting || c.conn.sent != "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
			t.Errorf("%s: %v after %q", name, err, c.conn.sent)
		}
		if c.conn.writeErr == nil && c.conn.deadline.Before(begin.Add(time.Minute)) {
			t.Errorf("%s: it has until %v, want a minute from %v", name, c.conn.deadline, begin)
		}
		if err := wantsTLS(t.Context(), c.conn, "h:1"); text(err) != c.tlsToo {
			t.Errorf("%s: %v, want %q", name, err, c.tlsToo)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestRefusal: only an alert of the server says that it rejects the client's certificate.
func TestRefusal(t *testing.T) {
	alert := &net.OpError{Op: "remote error", Err: errors.New("bad certificate")}
	for name, c := range map[string]struct {
		conn *scriptedConn
		want error
	}{
		"an alert":               {&scriptedConn{readErr: alert}, alert},
		"a broken connection":    {&scriptedConn{readErr: &net.OpError{Op: "read", Err: io.EOF}}, nil},
		"its end":                {&scriptedConn{readErr: io.EOF}, nil},
		"an answer":              {&scriptedConn{answer: "x"}, nil},
		"no deadline can be set": {&scriptedConn{deadlineErr: io.EOF, readErr: alert}, nil},
	} {
		c.conn.closed = make(chan struct{})
		begin := time.Now()
		if err := refusal(t.Context(), c.conn); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if c.conn.deadline.Before(begin.Add(refusalTime)) {
			t.Errorf("%s: it has until %v, want a second from %v", name, c.conn.deadline, begin)
		}
	}
}

// TestAnInterruptClosesAConnection: what waits for a server's first bytes ends when the context does.
func TestAnInterruptClosesAConnection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, wait := range map[string]func(c net.Conn) error{
		"greeting": func(c net.Conn) error { return greeting(ctx, c, "h:1", time.Minute) },
		"refusal":  func(c net.Conn) error { return refusal(ctx, c) },
	} {
		c := &scriptedConn{silent: true, closed: make(chan struct{})}
		err := wait(c)
		select {
		case <-c.closed:
		default:
			t.Errorf("%s: not closed: %v", name, err)
		}
	}
}

// DeadEndpoint is an address at which nothing listens.
func DeadEndpoint(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return "http://" + l.Addr().String()
}

// plainServer speaks HTTP/2 without TLS, as etcd does.
func plainServer() *httptest.Server {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	return s
}

// TestHandshakeOfSeveral: one endpoint that accepts a connection is enough. If none does, the reason is that of the
// first. Certificates do not matter for an endpoint without TLS.
func TestHandshakeOfSeveral(t *testing.T) {
	plain := plainServer()
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	trusted := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	trusted.RootCAs.AddCert(secure.Certificate())
	insecure := strings.Replace(secure.URL, "https:", "http:", 1)
	for name, c := range map[string]struct {
		endpoints []string
		tls       *tls.Config
		want      string
	}{
		"none":                        {nil, nil, ""},
		"it answers":                  {[]string{plain.URL}, nil, ""},
		"the second one answers":      {[]string{DeadEndpoint(t), plain.URL}, nil, ""},
		"the first one answers":       {[]string{plain.URL, DeadEndpoint(t)}, nil, ""},
		"none answers":                {[]string{DeadEndpoint(t), insecure}, nil, "refused"},
		"none, in another order":      {[]string{insecure, DeadEndpoint(t)}, nil, "is it https://"},
		"no URL":                      {[]string{"http://h:1%zz"}, nil, "invalid"},
		"it answers with TLS":         {[]string{secure.URL}, trusted, ""},
		"TLS for another endpoint":    {[]string{plain.URL}, trusted, ""},
		"a certificate of another CA": {[]string{secure.URL}, &tls.Config{MinVersion: tls.VersionTLS12}, "certificate"},
	} {
		cfg := &clientv3.Config{Endpoints: c.endpoints, TLS: c.tls, DialTimeout: 10 * time.Second}
		err := handshake(t.Context(), cfg)
		if (err == nil) != (c.want == "") || !strings.Contains(text(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestNoReasonAfterAnInterrupt: once the context has ended, no reason for an error of a client is added. An endpoint
// that is no URL is passed over.
func TestNoReasonAfterAnInterrupt(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a := &Access{DialTimeout: 5 * time.Second}
	dead := DeadEndpoint(t)
	u, err := url.Parse(dead)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := a.config(u)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // a row of the table
		want bool
	}{"interrupted": {ended, false}, "not interrupted": {t.Context(), true}} {
		for _, err := range []error{a.Because(c.ctx, []string{"http://h:1%zz", dead}, context.DeadlineExceeded),
			because(c.ctx, &cfg, context.DeadlineExceeded)} {
			if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "refused") != c.want {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestFirstThatAnswersEndsWithItsContext: after an interrupt no further endpoint is asked, and endpoints that were
// passed over are reported only to a caller that wants to know.
func TestFirstThatAnswersEndsWithItsContext(t *testing.T) {
	s := plainServer()
	defer s.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var a Access
	ask := func(string) error { return nil }
	err := a.FirstThatAnswers(ended, []string{"http://", "http://", s.URL}, ask)
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) || len(all.Unwrap()) != 1 {
		t.Errorf("%v, want the error of one endpoint", err)
	}
	if err := a.FirstThatAnswers(t.Context(), []string{"http://", s.URL}, ask); err != nil {
		t.Error(err)
	}
}

// TestConnectionsAreCounted: the begin of a connection is counted, and nothing else that gRPC reports of one.
func TestConnectionsAreCounted(t *testing.T) {
	n := 0
	c := connections(func() { n++ })
	c.HandleConn(t.Context(), &stats.ConnEnd{})
	if n != 0 {
		t.Error("an end is counted")
	}
	c.HandleConn(t.Context(), &stats.ConnBegin{})
	if n != 1 {
		t.Errorf("%d", n)
	}
	c.HandleRPC(t.Context(), &stats.Begin{})
	if c.TagConn(t.Context(), nil) != t.Context() || c.TagRPC(t.Context(), nil) != t.Context() || n != 1 {
		t.Errorf("%d", n)
	}
}

// TestVagueErrors: an error of a client that only says that the time is over, or that there is no connection, is vague.
func TestVagueErrors(t *testing.T) {
	for err, want := range map[error]bool{nil: false, io.EOF: false, context.Canceled: false,
		context.DeadlineExceeded: true, grpcstatus.Error(codes.DeadlineExceeded, ""): true,
		grpcstatus.Error(codes.Unavailable, ""): true, grpcstatus.Error(codes.Internal, ""): false} {
		if got := vague(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
