package ground

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hidden makes this test binary a keeper.
const hidden = "keeper-under-test"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == hidden {
		os.Exit(RunKeeper(os.Args[2:]))
	}
	os.Exit(m.Run())
}

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
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.1.2.3:2380/raft/stream/msgapp/1", nil)
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
		for _, u := range []string{"http://192.0.2.1:2380/x", "http://[2001:db8::1]:2380/x", "http://10.0.0.9:2380/x", "http://plain.example/x"} {
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

func TestNormal(t *testing.T) {
	for in, want := range map[string]string{
		"Node1.Example.:2380": "node1.example:2380", "10.0.0.1:2380": "10.0.0.1:2380", "[FD00:0:0::1]:2380": "[fd00::1]:2380",
		"[::ffff:10.0.0.1]:1": "10.0.0.1:1", "nonsense": "nonsense",
	} {
		if got := Normal(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestDNS: every name has one address of its own from the documentation ranges, over UDP and TCP, and no other kind of answer.
func TestDNS(t *testing.T) {
	d, err := newDNS("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for _, network := range []string{"udp", "tcp"} {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, d.addr())
		}}
		seen := map[string]string{}
		for i := range 300 {
			name := fmt.Sprintf("Etcd-%d.example.invalid.", i)
			ips, err := r.LookupIPAddr(t.Context(), name)
			if err != nil || len(ips) != 1 {
				t.Fatalf("%s %s: %v %v", network, name, ips, err)
			}
			ip := ips[0].String()
			if other := seen[ip]; other != "" {
				t.Fatalf("%s and %s are both %s", name, other, ip)
			}
			seen[ip] = name
			if !strings.HasPrefix(ip, "192.0.2.") && !strings.HasPrefix(ip, "198.51.100.") {
				t.Fatalf("%s is %s", name, ip)
			}
		}
		if _, _, err := r.LookupSRV(t.Context(), "etcd-server", "tcp", "example.invalid."); err == nil {
			t.Error("there is no SRV record")
		}
		if ips, err := r.LookupIPAddr(t.Context(), "localhost."); err != nil || !ips[0].IP.IsLoopback() {
			t.Error(ips, err)
		}
	}
	names := d.asked()
	if len(names) < 300 || names[0].Name != "etcd-0.example.invalid" || names[0].Queries < 2 {
		t.Errorf("%d names, first %+v", len(names), names[0])
	}
	for _, junk := range []string{"", "x", strings.Repeat("\xff", 600), "\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"} {
		if got := d.reply([]byte(junk)); got != nil {
			t.Errorf("%q was answered", junk)
		}
	}
}

// grounds are the grounds that this machine allows, each way to make a namespace by itself.
func grounds(t *testing.T) map[string]Ground {
	t.Helper()
	l, err := Local()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Ground{"local": l}
	for i, a := range namespaceAttributes() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := startKeeper(ctx, os.Args[0], hidden, t.TempDir(), a)
		if err != nil {
			t.Logf("way %d: %v", i, err) // not allowed here, as New would find out
			continue
		}
		out[fmt.Sprint("namespace ", i)] = r
	}
	for _, g := range out {
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return out
}

// TestGrounds does with each ground what a sandbox does.
func TestGrounds(t *testing.T) {
	for name, g := range grounds(t) {
		t.Run(name, func(t *testing.T) {
			info := g.Info()
			if info.Namespace != strings.HasPrefix(name, "namespace") {
				t.Errorf("%+v", info)
			}
			for _, n := range info.Notes {
				t.Log(n)
			}
			dir := t.TempDir()
			log := filepath.Join(dir, "log")
			shell := func(text string) (int, error) {
				return g.Launch(Launch{Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"A=b"}, Dir: dir, Log: log})
			}
			pid, err := shell("echo $A; pwd; env | wc -l; echo error >&2; exit 3")
			if err != nil {
				t.Fatal(err)
			}
			if e, err := g.Wait(pid); err != nil || e != (Exit{Code: 3}) {
				t.Error(e, err)
			}
			if b, _ := os.ReadFile(log); !strings.HasPrefix(string(b), "b\n"+dir+"\n") || !strings.HasSuffix(string(b), "error\n") {
				t.Errorf("%s", b)
			}
			// The whole group is signalled, children of the child included.
			pid, err = shell("sleep 1000 & sleep 1000; wait")
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Signal(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if e, err := g.Wait(pid); err != nil || e.Code != -1 || e.Signal != "killed" {
				t.Error(e, err)
			}
			if err := g.Signal(pid, syscall.SIGTERM); err != nil {
				t.Error("a process that has ended:", err)
			}
			if _, err := g.Wait(1); err == nil {
				t.Error("a process that is not ours")
			}
			if _, err := g.Launch(Launch{Path: "/nowhere", Dir: dir, Log: log}); err == nil {
				t.Error("a program that is not there")
			}
			port, err := g.FreePort()
			if err != nil || port < lowPort || port >= highPort {
				t.Error(port, err)
			}
			addr := fmt.Sprintf("127.0.0.1:%d", port)
			for range 2 {
				if err := g.Hold(addr); err != nil {
					t.Error(err)
				}
			}
			if err := g.Release(addr); err != nil {
				t.Error(err)
			}
			if err := g.Map("10.0.0.1:2380", addr); err != nil {
				t.Error(err)
			}
			if tr, err := g.Traffic(); err != nil || len(tr.Targets) != 0 {
				t.Error(tr, err)
			}
		})
	}
}

// TestNamespaceHoldsNothing: from inside a namespace nobody can be reached, and names are those of the sandbox for every program.
func TestNamespaceHoldsNothing(t *testing.T) {
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	for name, g := range grounds(t) {
		if !g.Info().Namespace {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "log")
			text := "cat /proc/net/dev /etc/resolv.conf /etc/hosts"
			pid, err := g.Launch(Launch{Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"PATH=/bin:/usr/bin"}, Dir: dir, Log: log})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Wait(pid); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range strings.Split(string(b), "\n") {
				dev, count, ok := strings.Cut(l, ":")
				if ok && strings.TrimSpace(dev) == "eth0" {
					t.Errorf("an interface of the machine: %s %s", dev, count)
				}
			}
			if g.Info().Names && !strings.Contains(string(b), "nameserver 127.0.0.1\n") {
				t.Errorf("%s", b)
			}
			// The address that answers outside is free inside.
			if err := g.Hold(outside.Addr().String()); err != nil {
				t.Errorf("the namespace sees the machine's loopback: %v", err)
			}
		})
	}
}

// TestKeeperInNoNamespace: a keeper that finds itself in the machine's own network refuses to work.
func TestKeeperInNoNamespace(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := startKeeper(ctx, os.Args[0], hidden, t.TempDir(), &syscall.SysProcAttr{})
	if err == nil || !strings.Contains(err.Error(), "no new network namespace") && !strings.Contains(err.Error(), errNoNamespaces.Error()) {
		t.Fatal(r, err)
	}
	if code := RunKeeper(nil); code != 2 {
		t.Error(code)
	}
	if _, err := Namespaced(ctx, "/bin/true", hidden, t.TempDir()); err == nil {
		t.Error("a program that is no keeper")
	}
}
