package isolation

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hidden makes this test binary an agent.
const hidden = "agent-under-test"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == hidden {
		os.Exit(RunAgent(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestNormal(t *testing.T) {
	for in, want := range map[string]string{
		"Node1.Example.:2380": "node1.example:2380", "10.0.0.1:2380": "10.0.0.1:2380",
		"[FD00:0:0::1]:2380":  "[fd00::1]:2380",
		"[::ffff:10.0.0.1]:1": "10.0.0.1:1", "nonsense": "nonsense",
	} {
		if got := Normal(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestDNS: every name has one address of its own from the documentation ranges, over UDP and TCP, and no other kind of
// answer.
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
	for _, junk := range []string{"", "x", strings.Repeat("\xff", 600),
		"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"} {
		if got := d.reply([]byte(junk)); got != nil {
			t.Errorf("%q was answered", junk)
		}
	}
}

// runtimes are the runtimes that this machine allows, each way to make a namespace by itself.
func runtimes(t *testing.T) map[string]Runtime {
	t.Helper()
	l, err := Local()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Runtime{"local": l}
	for i, a := range namespaceAttributes() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := startAgent(ctx, os.Args[0], hidden, t.TempDir(), a)
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

// TestRuntimes does with each runtime what a sandbox does.
func TestRuntimes(t *testing.T) {
	for name, g := range runtimes(t) {
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
				return g.Launch(Launch{Path: "/bin/sh", Args: []string{"-c", text}, Env: []string{"A=b"}, Dir: dir,
					Log: log})
			}
			pid, err := shell("echo $A; pwd; env | wc -l; echo error >&2; exit 3")
			if err != nil {
				t.Fatal(err)
			}
			if e, err := g.Wait(pid); err != nil || e != (Exit{Code: 3}) {
				t.Error(e, err)
			}
			if b, _ := os.ReadFile(log); !strings.HasPrefix(string(b), "b\n"+dir+"\n") ||
				!strings.HasSuffix(string(b), "error\n") {
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
				if err := g.ReservePort(addr); err != nil {
					t.Error(err)
				}
			}
			if err := g.ReleasePort(addr); err != nil {
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

// TestNamespaceHoldsNothing: from inside a namespace nobody can be reached, and names are those of the sandbox for
// every program.
func TestNamespaceHoldsNothing(t *testing.T) {
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	for name, g := range runtimes(t) {
		if !g.Info().Namespace {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "log")
			text := "cat /proc/net/dev /etc/resolv.conf /etc/hosts"
			pid, err := g.Launch(Launch{Path: "/bin/sh", Args: []string{"-c", text},
				Env: []string{"PATH=/bin:/usr/bin"}, Dir: dir, Log: log})
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
			if err := g.ReservePort(outside.Addr().String()); err != nil {
				t.Errorf("the namespace sees the machine's loopback: %v", err)
			}
		})
	}
}

// TestAgentInNoNamespace: an agent that finds itself in the machine's own network refuses to work.
func TestAgentInNoNamespace(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := startAgent(ctx, os.Args[0], hidden, t.TempDir(), &syscall.SysProcAttr{})
	if err == nil || !strings.Contains(err.Error(), "not a new network namespace") &&
		!strings.Contains(err.Error(), errNoNamespaces.Error()) {
		t.Fatal(r, err)
	}
	if code := RunAgent(nil); code != 2 {
		t.Error(code)
	}
	if _, err := Namespaced(ctx, "/bin/true", hidden, t.TempDir()); err == nil {
		t.Error("a program that is no agent")
	}
}
