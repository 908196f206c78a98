package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/node"
)

func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// trio are the configurations of three members of a cluster that was never started.
func trio(dir, scheme, hosts string) []node.MemberConfig {
	var out []node.MemberConfig
	var initial []string
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("n%d", i)
		u := scheme + "://" + fmt.Sprintf(hosts, i) + ":2380"
		initial = append(initial, name+"="+u)
		out = append(out, node.MemberConfig{
			Name: name, DataDir: filepath.Join(dir, name), PeerURLs: []string{u},
			ClientURLs: []string{strings.Replace(u, ":2380", ":2379", 1)}, Token: "t",
		})
	}
	for i := range out {
		out[i].InitialCluster = strings.Join(initial, ",")
	}
	return out
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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

func TestThreeMembersServe(t *testing.T) {
	s := newSandbox(t, node.Options{Isolation: node.Namespace})
	start := time.Now()
	ms := startAll(t, s, trio(t.TempDir(), "http", "10.1.2.%d"))
	t.Log("ready after", time.Since(start))
	c, err := s.Client(ms...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		cl, err := m.Client()
		if err != nil {
			t.Fatal(err)
		}
		r, err := cl.Get(t.Context(), "a")
		if err != nil || len(r.Kvs) != 1 {
			t.Fatal(r, err)
		}
	}
	t.Log(strings.Join(s.Proof().Lines(), "\n"))
}
