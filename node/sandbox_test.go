package node_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/node"
)

func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	if handled, code := withoutMemory(); handled {
		os.Exit(code)
	}
	if handled, code := becoming(); handled {
		os.Exit(code)
	}
	if handled, code := tracing(); handled {
		os.Exit(code)
	}
	if spec := os.Getenv(envHolder); spec != "" {
		os.Exit(report(hold(spec)))
	}
	os.Exit(m.Run())
}

// isolations are the kinds of isolation that this machine allows. Where it allows no namespace, that is refused with a
// reason, which TestWithoutNamespaces looks at.
func isolations(t *testing.T) []node.Isolation {
	t.Helper()
	s, err := node.New(t.Context(), node.Options{Dir: t.TempDir(), Isolation: node.Auto})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Isolation() == node.Namespace {
		return []node.Isolation{node.Namespace, node.Proxy}
	}
	return []node.Isolation{node.Proxy}
}

// urlKinds are the kinds of peer URLs that behave differently.
var urlKinds = map[string]string{
	"private addresses": "http://10.1.2.%d:2380",
	"https host names":  "https://etcd-%d.example.invalid:2380",
	"plain host names":  "http://etcd-%d:2380",
	"loopback":          "http://127.0.0.1:61%d80",
	"https loopback":    "https://localhost:61%d81",
	"ipv6":              "http://[fd00::%d]:2380",
}

// report makes an exit code of what a process of its own did.
func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func newSandbox(t *testing.T, o node.Options) *node.Sandbox {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Log = func(s string) { t.Log(s) }
	o.UnsafeNoFsync = true
	s, err := node.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for _, m := range s.Members() {
				b, _ := os.ReadFile(m.LogFile())
				t.Logf("%s:\n%s", m.Name(), b[max(0, len(b)-4000):])
			}
		}
	})
	return s
}

func startAll(t *testing.T, s *node.Sandbox, configs []node.MemberConfig) []*node.Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var ms []*node.Member
	for _, c := range configs {
		m, err := s.Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	for _, m := range ms {
		if err := m.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return ms
}
