package evidence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	grpcstatus "google.golang.org/grpc/status"
)

// Access says how to connect to a running member, with the same settings as etcdctl.
type Access struct {
	// CACert, Cert and Key are PEM files; empty ones are not used.
	CACert, Cert, Key string
	// User is NAME:PASSWORD; empty means no login.
	User string
	// DialTimeout bounds connecting; 0 means 5 seconds.
	DialTimeout time.Duration
	// Connected is called for each connection that a client has made, also again after one broke. nil is not called.
	Connected func()
	// Skipped is called with the reason for each endpoint that was passed over because a later one answered. nil is not
	// called.
	Skipped func(error)
	// Window is how many bytes of a stream may arrive before they are read, at least 64 KiB. 0 leaves it to gRPC, which
	// buffers up to 16 MiB from a fast server.
	Window int32
}

// IsEndpoint reports whether where is the client URL of a running member and not a path.
func IsEndpoint(where string) bool { return isEndpoint(where) }

// isEndpoint reports whether where is the client URL of a running member and not a path.
func isEndpoint(where string) bool {
	return strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://")
}

// ListedMember is a member as the cluster lists it: what it is called, and the first URL at which clients reach it.
type ListedMember struct{ Name, URL string }

// Members is MemberList without what is not needed to reach the members. A member without a client URL has never
// started, so its URL is empty. The member that answered keeps the URL by which it was reached. A URL that others list
// too, as that of a load balancer, is taken only if there is no other.
func (a *Access) Members(ctx context.Context, endpoints []string) ([]ListedMember, error) {
	r, endpoint, err := a.MemberList(ctx, endpoints)
	if err != nil {
		return nil, err
	}
	var out []ListedMember
	for _, m := range r.Members {
		urls := m.ClientURLs
		if m.ID == r.Header.GetMemberId() {
			urls = append([]string{endpoint}, urls...)
		}
		l := ListedMember{Name: m.Name}
		for i, u := range slices.Backward(urls) {
			if i == 0 && l.URL == "" || !listedByOther(r.Members, m.ID, u) {
				l.URL = u
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// listedByOther reports whether another member than that of the ID lists a client URL.
func listedByOther(list []*etcdserverpb.Member, id uint64, url string) bool {
	return slices.ContainsFunc(list, func(m *etcdserverpb.Member) bool {
		return m.ID != id && slices.Contains(m.ClientURLs, url)
	})
}

// MemberList asks the endpoints in order for the list of members until one answers, and returns that endpoint. The
// members of a cluster without quorum answer too.
func (a *Access) MemberList(ctx context.Context, endpoints []string) (list *clientv3.MemberListResponse,
	endpoint string, err error) {
	err = a.FirstThatAnswers(ctx, endpoints, func(e string) (err error) {
		list, err = a.listFrom(ctx, e)
		endpoint = e
		return err
	})
	return list, endpoint, err
}

// FirstThatAnswers calls ask for the endpoints in order until it succeeds for one. It passes over an endpoint at which
// no server answers soon. Skipped is called for those passed over; if all fail, the error is that of all.
func (a *Access) FirstThatAnswers(ctx context.Context, endpoints []string, ask func(endpoint string) error) error {
	var errs []error
	for _, e := range endpoints {
		err := a.Probe(ctx, e)
		var broken *SourceError
		if err != nil && !errors.As(err, &broken) {
			err = fmt.Errorf("%s does not answer (running? see --cacert, --cert, --key): %w", e, err)
		}
		if err == nil {
			err = ask(e)
		}
		if err == nil {
			for i := range errs {
				if a.Skipped != nil {
					a.Skipped(errs[i])
				}
			}
			return nil
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (a *Access) listFrom(ctx context.Context, endpoint string) (*clientv3.MemberListResponse, error) {
	cli, err := a.Dial(ctx, []string{endpoint})
	if err != nil {
		return nil, err
	}
	defer func() { _ = cli.Close() }()
	ask, cancel := context.WithTimeout(ctx, cmp.Or(a.DialTimeout, listTimeout))
	defer cancel()
	r, err := cli.MemberList(ask, clientv3.WithSerializable())
	if err != nil {
		return nil, fmt.Errorf("%s does not list its members (running? see --cacert, --cert, --key, --user): %w",
			endpoint, a.Because(ctx, []string{endpoint}, err))
	}
	r.Members = r.Members[:min(len(r.Members), maxListed)]
	return r, nil
}

// listTimeout bounds the wait for a list of members; no cluster has as many as maxListed.
const (
	listTimeout = 5 * time.Second
	maxListed   = 100
)

// Dial returns a client for the cluster at the endpoints, http(s)://HOST:PORT each. The caller closes it. ctx bounds
// the login only.
func (a *Access) Dial(ctx context.Context, endpoints []string) (*clientv3.Client, error) {
	var all []string
	var cfg clientv3.Config
	for _, e := range endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || !isEndpoint(e) {
			return nil, notAnEndpoint(e, err)
		}
		if cfg, err = a.config(u); err != nil {
			return nil, err
		}
		all = append(all, cfg.Endpoints...)
	}
	cfg.Endpoints = all
	c, err := connect(ctx, &cfg)
	if err != nil {
		err = fmt.Errorf("%s: no login (running? see --cacert, --cert, --key, --user): %w",
			strings.Join(endpoints, ","), err)
	}
	return c, err
}

// Get requests a page from an endpoint over HTTP, with the certificates of etcd's clients. It reads at most limit
// bytes.
func (a *Access) Get(ctx context.Context, endpoint, path string, limit int64) (_ []byte, err error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || !isEndpoint(endpoint) {
		return nil, fmt.Errorf("%s is not an endpoint", endpoint)
	}
	cfg, err := a.config(u)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{TLSClientConfig: cfg.TLS, DisableKeepAlives: true}
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.Scheme+"://"+u.Host+path, nil)
	if err != nil {
		return nil, err
	}
	r, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Body.Close()) }()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s%s: %s", endpoint, path, r.Status)
	}
	return io.ReadAll(io.LimitReader(r.Body, limit))
}

// streamBuffer is the size of a connection's own buffers with a Window.
const streamBuffer = 16 << 10

// connect makes a client and logs in.
func connect(ctx context.Context, cfg *clientv3.Config) (*clientv3.Client, error) {
	var known atomic.Bool
	c, err := login(ctx, *cfg, func(ctx context.Context) error {
		why := handshake(ctx, cfg)
		known.Store(why != nil)
		return why
	})
	if vague(err) && !known.Load() {
		err = because(ctx, cfg, err)
	}
	return c, err
}

// because adds the reason to an error that only says that the time is over, such as a certificate that does not match,
// or no server.
func because(ctx context.Context, cfg *clientv3.Config, err error) error {
	if why := handshake(ctx, cfg); why != nil && ctx.Err() == nil {
		return fmt.Errorf("%w (%w)", why, err)
	}
	return err
}

// Because adds the reason why the endpoints do not accept a connection to a client's error that only says that the time
// is over. It returns other errors unchanged.
func (a *Access) Because(ctx context.Context, endpoints []string, err error) error {
	if !vague(err) {
		return err
	}
	for _, e := range endpoints {
		u, parsed := url.Parse(e)
		if parsed != nil {
			continue
		}
		cfg, broken := a.config(u)
		if broken != nil {
			return broken
		}
		cfg.DialTimeout = min(cfg.DialTimeout, 2*time.Second)
		if why := handshake(ctx, &cfg); why != nil && ctx.Err() == nil {
			return fmt.Errorf("%w (%w)", why, err)
		}
	}
	return err
}

// vague reports whether an error of a client hides why the connection failed.
func vague(err error) bool {
	return err != nil && (errors.Is(err, context.DeadlineExceeded) || grpcstatus.Code(err) == codes.DeadlineExceeded ||
		grpcstatus.Code(err) == codes.Unavailable)
}

// handshake finds out why no endpoint accepts a connection, which a client does not report; nil if one does.
func handshake(ctx context.Context, cfg *clientv3.Config) error {
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	var first error
	for _, e := range cfg.Endpoints {
		u, err := url.Parse(e)
		if err != nil {
			return err
		}
		var c net.Conn
		if cfg.TLS != nil && u.Scheme == "https" {
			d := tls.Dialer{Config: cfg.TLS}
			if c, err = d.DialContext(ctx, "tcp", u.Host); err == nil {
				err = refusal(ctx, c)
			}
		} else {
			var d net.Dialer
			if c, err = d.DialContext(ctx, "tcp", u.Host); err == nil {
				err = wantsTLS(ctx, c, u.Host)
			}
		}
		if c != nil {
			_ = c.Close()
		}
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// refusal returns the TLS alert of a server that rejects the client's certificate; nil if the server waits for the
// client. With TLS 1.3 the alert follows the handshake, so that connecting seems to succeed.
func refusal(ctx context.Context, c net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := c.SetReadDeadline(time.Now().Add(refusalTime)); err != nil {
		return nil
	}
	_, err := c.Read(make([]byte, 1))
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return err
	}
	return nil
}

// wantsTLS returns an error if a server closes a plain-text connection, or answers with a TLS alert or with HTTP/1;
// otherwise nil.
func wantsTLS(ctx context.Context, c net.Conn, host string) error {
	var closed *plainTextError
	var other *noClientURLError
	if err := greeting(ctx, c, host, refusalTime); errors.As(err, &closed) || errors.As(err, &other) {
		return err
	}
	return nil
}

// plainTextError says that a server takes no connection without TLS.
type plainTextError struct{ host string }

// Error implements error.
func (e *plainTextError) Error() string {
	return fmt.Sprintf("%s closes connections without TLS: is it https://%s?", e.host, e.host)
}

// noClientURLError says that a server does not speak HTTP/2, which every client URL of etcd does.
type noClientURLError struct{ host string }

// Error implements error.
func (e *noClientURLError) Error() string {
	return fmt.Sprintf("%s answers without HTTP/2, which etcd's client URLs speak: is it a peer URL, or another "+
		"service?", e.host)
}

// greeting waits for the first bytes that a server of HTTP/2 sends on a plain-text connection.
func greeting(ctx context.Context, c net.Conn, host string, limit time.Duration) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	b := make([]byte, 512)
	n, err := c.Read(b)
	alert := bytes.HasPrefix(b[:n], []byte{0x15, 3}) || bytes.Contains(b[:n], []byte("HTTPS server"))
	switch {
	case alert || n == 0 && errors.Is(err, io.EOF):
		return &plainTextError{host}
	case bytes.HasPrefix(b[:n], []byte("HTTP/1.")), bytes.HasPrefix(b[:n], []byte("<")):
		return &noClientURLError{host}
	case n == 0:
		return err
	}
	return nil
}

// refusalTime is how long a server may take to send an alert.
const refusalTime = time.Second

// unreachable is a failure of the run, not a bad source: the member may be down, or the access flags wrong.
func unreachable(endpoint string, err error) error {
	return fmt.Errorf("%s does not send a snapshot (running? see --cacert, --cert, --key, --user): %w", endpoint, err)
}

// A server that stops in the middle of a stream keeps its connection: only pings show that it does not answer any more.
// etcdctl sends them as often.
const (
	pingEvery   = 10 * time.Second
	pingTimeout = 20 * time.Second
)

func (a *Access) config(u *url.URL) (clientv3.Config, error) {
	cfg := clientv3.Config{Endpoints: []string{u.Scheme + "://" + u.Host}, DialTimeout: a.DialTimeout,
		DialKeepAliveTime: pingEvery, DialKeepAliveTimeout: pingTimeout, Logger: zap.NewNop()}
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = 5 * time.Second
	}
	if a.Window > 0 {
		cfg.DialOptions = []grpc.DialOption{grpc.WithInitialWindowSize(a.Window),
			grpc.WithInitialConnWindowSize(a.Window),
			grpc.WithReadBufferSize(streamBuffer), grpc.WithWriteBufferSize(streamBuffer)}
	}
	if a.Connected != nil {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithStatsHandler(connections(a.Connected)))
	}
	if a.User != "" {
		name, password, ok := strings.Cut(a.User, ":")
		if !ok {
			return cfg, errors.New("--user needs NAME:PASSWORD")
		}
		cfg.Username, cfg.Password = name, password
	}
	if u.Scheme != "https" {
		return cfg, nil
	}
	cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CACert != "" {
		pem, err := os.ReadFile(a.CACert)
		if err != nil {
			return cfg, err
		}
		cfg.TLS.RootCAs = x509.NewCertPool()
		if !cfg.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return cfg, fmt.Errorf("%s does not contain a PEM certificate", a.CACert)
		}
	}
	if a.Cert != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return cfg, err
		}
		cfg.TLS.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// connections calls a function for each connection that is made.
type connections func()

// TagConn implements stats.Handler.
func (connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (c connections) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnBegin); ok {
		c()
	}
}

// TagRPC implements stats.Handler.
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (connections) HandleRPC(context.Context, stats.RPCStats) {}
