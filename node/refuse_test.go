package node_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
)

func refused(t *testing.T, err error, text string) {
	t.Helper()
	var r *refusal.Error
	if !errors.As(err, &r) || !strings.Contains(err.Error(), text) {
		t.Fatalf("want a refusal that says %q, got %v", text, err)
	}
}

// TestMissingMemberIsRefused starts two of three dirs: they form a quorum, and what they want of the third is refused
// and counted.
func TestMissingMemberIsRefused(t *testing.T) {
	for _, iso := range isolations(t) {
		t.Run(string(iso), func(t *testing.T) {
			s := newSandbox(t, node.Options{Isolation: iso})
			startAll(t, s, trio(t.TempDir(), "http://10.1.2.%d:2380")[:2])
			p := seenRefused(t, s)
			if p.Isolation != iso || p.Refused() == 0 {
				t.Errorf("the third member was asked for and must have been refused: %+v", p)
			}
			for _, tg := range p.Targets {
				if out := tg.Address == "10.1.2.3:2380"; out != (tg.Refused > 0) || out != (tg.Via == "") {
					t.Errorf("%+v", tg)
				}
			}
			if text := strings.Join(p.Lines(), "\n"); !strings.Contains(text, "10.1.2.3:2380: refused") {
				t.Error(text)
			}
		})
	}
}

// seenRefused waits until something was refused: members that serve clients may still be about to ask for the one that
// is missing.
func seenRefused(t *testing.T, s *node.Sandbox) node.Proof {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		p := s.Proof()
		if p.Refused() > 0 || time.Now().After(end) {
			return p
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestNoQuorum: one of three never serves clients, and the error says what is missing.
func TestNoQuorum(t *testing.T) {
	s := newSandbox(t, node.Options{})
	m, err := s.Start(t.Context(), trio(t.TempDir(), "http://10.1.2.%d:2380")[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := m.Ready(ctx); err == nil || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "quorum") {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), m.Config()); err == nil {
		t.Error("a member cannot run twice")
	}
}

// TestLoopbackOccupied: something answers at a member's loopback address, whether the member is started or only known.
// Members would dial it directly.
func TestLoopbackOccupied(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := "http://" + l.Addr().String()
	_, err = node.New(t.Context(), node.Options{Dir: t.TempDir(), Isolation: node.Proxy,
		KnownPeers: []string{"http://10.0.0.1:2380", taken}})
	refused(t, err, l.Addr().String())

	s := newSandbox(t, node.Options{Isolation: node.Proxy})
	c := trio(t.TempDir(), "http://127.0.0.1:61%d82")[0]
	c.InitialCluster += ",other=" + taken
	_, err = s.Start(t.Context(), c)
	refused(t, err, l.Addr().String())
	c.PeerURLs, c.InitialCluster = []string{taken}, c.Name+"="+taken
	_, err = s.Start(t.Context(), c)
	refused(t, err, l.Addr().String())
}

// TestLoopbackHeld: the loopback addresses of members that do not run are occupied, and who comes is turned away and
// counted.
func TestLoopbackHeld(t *testing.T) {
	s := newSandbox(t, node.Options{Isolation: node.Proxy})
	ms := startAll(t, s, trio(t.TempDir(), "http://127.0.0.1:61%d83")[:2])
	if p := seenRefused(t, s); p.Refused() == 0 {
		t.Errorf("%+v", p)
	}
	if err := ms[0].Kill(); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"127.0.0.1:61183", "127.0.0.1:61383"} {
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			t.Errorf("%s is free for anybody", addr)
		}
	}
	if _, err := s.Start(t.Context(), ms[0].Config()); err != nil {
		t.Fatal(err)
	}
}

// TestStartError: a server that ends by itself tells why.
func TestStartError(t *testing.T) {
	dir := t.TempDir()
	s := newSandbox(t, node.Options{})
	c := trio(dir, "http://10.1.2.%d:2380")[0]
	c.InitialCluster = c.Name + "=" + c.PeerURLs[0]
	startAll(t, s, []node.MemberConfig{c})
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(c.DataDir, "member", "snap", "db")
	if err := os.WriteFile(db, []byte(strings.Repeat("no database", 4096)), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := s.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = m.Ready(ctx)
	var se *node.StartError
	if !errors.As(err, &se) {
		t.Fatalf("want a StartError, got %v", err)
	}
	if se.Exit.Code == 0 || len(se.Lines) == 0 || !strings.Contains(err.Error(), "invalid database") {
		t.Errorf("%v: %+v", err, se)
	}
	if b, err := os.ReadFile(se.LogFile); err != nil || len(b) == 0 {
		t.Errorf("the log is at %s: %v", se.LogFile, err)
	}
	if got := m.FatalLines(); len(got) != len(se.Lines) {
		t.Errorf("%q against %q", got, se.Lines)
	}
}

func TestStartRefusesNonsense(t *testing.T) {
	s := newSandbox(t, node.Options{Isolation: node.Proxy})
	good := trio(t.TempDir(), "http://10.1.2.%d:2380")[0]
	for what, spoil := range map[string]func(*node.MemberConfig){
		"no name":     func(c *node.MemberConfig) { c.Name = "" },
		"no dir":      func(c *node.MemberConfig) { c.DataDir = "" },
		"no peer URL": func(c *node.MemberConfig) { c.PeerURLs = nil },
		"unix peer":   func(c *node.MemberConfig) { c.PeerURLs = []string{"unix://x"} },
		"no port":     func(c *node.MemberConfig) { c.PeerURLs = []string{"http://10.1.2.3"} },
	} {
		c := good
		spoil(&c)
		if _, err := s.Start(t.Context(), c); err == nil {
			t.Errorf("%s: was started", what)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), good); err == nil {
		t.Error("a closed sandbox started a member")
	}
	if _, err := s.Client(); err == nil {
		t.Error("a closed sandbox gave a client")
	}
	if err := s.Close(); err != nil {
		t.Error("closing twice:", err)
	}
}
