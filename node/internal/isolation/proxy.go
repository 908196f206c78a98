package isolation

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// proxy is the forward proxy between the members. It connects only to a fixed set of loopback addresses.
type proxy struct {
	listener net.Listener
	server   *http.Server
	plain    *httputil.ReverseProxy
	mu       sync.Mutex
	routes   map[string]string
	seen     map[seenKey]*Target
}

type seenKey struct {
	address string
	tunnel  bool
}

// dialTimeout bounds a connect on loopback, which succeeds at once or not at all.
const dialTimeout = 5 * time.Second

func newProxy() (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, routes: map[string]string{}, seen: map[seenKey]*Target{}}
	quiet := zap.NewStdLog(zap.NewNop()) // failures are answered and counted
	p.plain = &httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {},
		FlushInterval: -1, // raft streams are endless responses of small messages
		Transport: &http.Transport{
			DialContext:        p.dialMember,
			DisableCompression: true,
			// A member keeps several requests to each peer open.
			MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
		},
		ErrorHandler: p.failed,
		ErrorLog:     quiet,
	}
	p.server = &http.Server{Handler: p, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.server.Close()
	p.plain.Transport.(*http.Transport).CloseIdleConnections()
}

// Normal returns an address as the proxy compares it: host in lower case and without a trailing dot, IP addresses in
// their shortest form.
func Normal(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return strings.ToLower(address)
	}
	if ip := net.ParseIP(host); ip != nil {
		host = ip.String()
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(host), "."), port)
}

// set routes requests for the target to addr. Earlier refused requests were for a member that was not up yet, and are
// counted as such.
func (p *proxy) set(target, addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	target = Normal(target)
	p.routes[target] = addr
	for _, t := range p.seen {
		if t.Address == target {
			t.Via, t.Requests, t.Down, t.Refused = addr, t.Requests+t.Refused, t.Down+t.Refused, 0
		}
	}
}

// route reports whether a target has a route, and counts the request.
func (p *proxy) route(target string, tunnel bool) bool {
	target = Normal(target)
	p.mu.Lock()
	defer p.mu.Unlock()
	addr, ok := p.routes[target]
	t := p.count(target, tunnel)
	t.Via = addr
	if ok {
		t.Requests++
	} else {
		t.Refused++
	}
	return ok
}

func (p *proxy) count(target string, tunnel bool) *Target {
	k := seenKey{target, tunnel}
	t := p.seen[k]
	if t == nil {
		t = &Target{Address: target, Tunnel: tunnel}
		p.seen[k] = t
	}
	return t
}

func (p *proxy) down(target string, tunnel bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(Normal(target), tunnel).Down++
}

func (p *proxy) targets() []Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Target, 0, len(p.seen))
	for _, t := range p.seen {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Via, b.Via))
	})
	return out
}

// ServeHTTP answers one request of a member.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	if !r.URL.IsAbs() || r.URL.Scheme != "http" {
		http.Error(w, "a request to a proxy must be for http://HOST:PORT/PATH", http.StatusBadRequest)
		return
	}
	if !p.route(withPort(r.URL.Host), false) {
		http.Error(w, "not a member of the sandbox", http.StatusBadGateway)
		return
	}
	p.plain.ServeHTTP(w, r)
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}

// dialMember makes the only connections of the proxy: to the address that a target is mapped to.
func (p *proxy) dialMember(ctx context.Context, _, target string) (net.Conn, error) {
	p.mu.Lock()
	addr, ok := p.routes[Normal(target)]
	p.mu.Unlock()
	if !ok {
		return nil, errors.New("not a member of the sandbox")
	}
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "tcp", addr)
}

func (p *proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, context.Canceled) {
		p.down(withPort(r.URL.Host), false)
	}
	w.WriteHeader(http.StatusBadGateway)
}

// tunnel connects a CONNECT request to the TLS port of a member.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	if !p.route(r.Host, true) {
		http.Error(w, "not a member of the sandbox", http.StatusBadGateway)
		return
	}
	member, err := p.dialMember(r.Context(), "tcp", r.Host)
	if err != nil {
		p.down(r.Host, true)
		http.Error(w, "the member does not answer", http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = member.Close()
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		splice(client, member, buffered.Reader)
	}
	_ = client.Close()
	_ = member.Close()
}

// splice copies both ways until both are done. It passes on the end of each direction, as TCP does.
func splice(client, member net.Conn, early io.Reader) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(member, early) // data that came with the CONNECT, and everything after it
		closeWrite(member)
	}()
	_, _ = io.Copy(client, member)
	closeWrite(client)
	<-done
}

func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
}
