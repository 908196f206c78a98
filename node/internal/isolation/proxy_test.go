package isolation

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func newTestProxy(t *testing.T) (*proxy, *http.Client) {
	t.Helper()
	p, err := newProxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	u, err := url.Parse(p.url())
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(u)}
	t.Cleanup(tr.CloseIdleConnections)
	return p, &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

// TestProxyFlushesAtOnce: a raft stream is a response without end; each message must come through when it is written.
func TestProxyFlushesAtOnce(t *testing.T) {
	next := make(chan string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "10.1.2.3:2380" || r.Header.Get("X-Etcd-Cluster-ID") != "cdf8" {
			t.Errorf("host %q, headers %v", r.Host, r.Header)
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for s := range next {
			fmt.Fprintln(w, s)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer srv.Close()
	p, c := newTestProxy(t)
	p.set("10.1.2.3:2380", srv.Listener.Addr().String())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.1.2.3:2380/raft/stream/msgapp/1",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Etcd-Cluster-ID", "cdf8")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	br := bufio.NewReader(resp.Body)
	for i := range 3 {
		next <- fmt.Sprint("message ", i)
		if line, err := br.ReadString('\n'); err != nil || line != fmt.Sprintf("message %d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
	}
	close(next)
	if _, err := br.ReadByte(); err != io.EOF {
		t.Error(err)
	}
	want := Target{Address: "10.1.2.3:2380", Via: srv.Listener.Addr().String(), Requests: 1}
	if got := p.targets(); len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
}

// TestProxyTunnels: https peers come by CONNECT, under the names that their certificates carry, in any spelling.
func TestProxyTunnels(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s got %d bytes", r.Host, len(b))
	}))
	defer srv.Close()
	p, c := newTestProxy(t)
	c.Transport.(*http.Transport).TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
	p.set("Example.com:2380", srv.Listener.Addr().String())
	body := strings.Repeat("x", 4<<20)
	resp, err := c.Post("https://example.com:2380/x", "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != fmt.Sprintf("example.com:2380 got %d bytes", len(body)) {
		t.Errorf("%s", b)
	}
	if got := p.targets(); len(got) != 1 || !got[0].Tunnel || got[0].Requests != 1 || got[0].Refused != 0 {
		t.Errorf("%+v", got)
	}
}

// TestProxyRefuses: what is no member gets 502 and is counted; a member that is down gets 502 and is counted as such.
func TestProxyRefuses(t *testing.T) {
	p, c := newTestProxy(t)
	p.set("10.0.0.9:2380", closedPort(t))
	for range 3 {
		for _, u := range []string{"http://192.0.2.1:2380/x", "http://[2001:db8::1]:2380/x", "http://10.0.0.9:2380/x",
			"http://plain.example/x"} {
			resp, err := c.Get(u)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadGateway {
				t.Errorf("%s: %s", u, resp.Status)
			}
		}
		for _, u := range []string{"https://192.0.2.1:2380/x", "https://10.0.0.9:2380/x"} {
			if resp, err := c.Get(u); err == nil {
				resp.Body.Close()
				t.Errorf("%s: %s", u, resp.Status)
			}
		}
	}
	want := map[string]Target{
		"10.0.0.9:2380 false": {Requests: 3, Down: 3}, "10.0.0.9:2380 true": {Requests: 3, Down: 3},
		"192.0.2.1:2380 false": {Refused: 3}, "192.0.2.1:2380 true": {Refused: 3},
		"[2001:db8::1]:2380 false": {Refused: 3}, "plain.example:80 false": {Refused: 3},
	}
	got := p.targets()
	for _, g := range got {
		w := want[fmt.Sprint(g.Address, " ", g.Tunnel)]
		if g.Requests != w.Requests || g.Refused != w.Refused || g.Down != w.Down || (g.Via == "") != (w.Refused > 0) {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%+v", got)
	}
	// Whoever takes it for a web server is told what it is.
	resp, err := http.Get(p.url() + "/metrics") //nolint:gosec // the proxy's own address
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Error(resp.Status)
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestProxyCountsMembersThatComeLater: what was refused before a member was up was no request to anybody outside.
func TestProxyCountsMembersThatComeLater(t *testing.T) {
	p, c := newTestProxy(t)
	for _, u := range []string{"http://10.0.0.9:2380/x", "http://10.0.0.8:2380/x"} {
		resp, err := c.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if resp, err := c.Get("https://10.0.0.9:2380/x"); err == nil {
		resp.Body.Close()
		t.Error(resp.Status)
	}
	via := closedPort(t)
	p.set("10.0.0.9:2380", via)
	for _, g := range p.targets() {
		if came := g.Address == "10.0.0.9:2380"; came != (g.Refused == 0) || came != (g.Requests == 1 && g.Down == 1) ||
			came != (g.Via == via) {
			t.Errorf("%+v", g)
		}
	}
}
