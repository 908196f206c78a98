//go:build e2e

package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/release"
)

var servers = []string{"3.3.18", "3.4.3", "3.5.0", "3.5.35", "3.6.16", "3.7.3"}

// TestE2EMatrix writes dirs with real servers of every line, in several states, starts every other line on a copy of
// each, and wants the prediction to agree with what happens, and the server's words to be those foretold.
func TestE2EMatrix(t *testing.T) {
	for _, w := range servers {
		for _, state := range states {
			if state.only != "" && !strings.Contains(state.only, w[:3]) {
				continue
			}
			t.Run(w+"/"+state.name, func(t *testing.T) {
				t.Parallel()
				c := clustertest.Start(t, clustertest.Server(t, w), 1, state.options)
				state.fill(t, c)
				c.StopAll()
				for _, o := range servers {
					t.Run("to "+o, func(t *testing.T) { agree(t, c, o) })
				}
			})
		}
	}
}

// state is how a dir looks when it is left.
type state struct {
	name, only string
	options    clustertest.Options
	fill       func(*testing.T, *clustertest.Cluster)
}

func puts(n int) func(*testing.T, *clustertest.Cluster) {
	return func(t *testing.T, c *clustertest.Cluster) {
		t.Helper()
		for i := range n {
			c.Put(0, fmt.Sprint("k", i%7), "v")
		}
	}
}

var states = []state{
	{"no raft snapshot", "", clustertest.Options{}, puts(70)},
	{"behind a raft snapshot", "", clustertest.Options{SnapshotCount: 20}, puts(70)},
	{"restarted behind a raft snapshot", "", clustertest.Options{SnapshotCount: 20},
		func(t *testing.T, c *clustertest.Cluster) {
			puts(70)(t, c)
			c.Restart(0)
			puts(3)(t, c)
		}},
	{"v2 keys", "3.3 3.4 3.5", clustertest.Options{Args: []string{"--enable-v2"}},
		func(t *testing.T, c *clustertest.Cluster) {
			puts(10)(t, c)
			v2put(t, c)
		}},
	{"v2 keys in the raft snapshot", "3.3 3.4 3.5",
		clustertest.Options{SnapshotCount: 20, Args: []string{"--enable-v2"}},
		func(t *testing.T, c *clustertest.Cluster) {
			v2put(t, c)
			puts(70)(t, c)
		}},
	{"learner", "3.4 3.5 3.6 3.7", clustertest.Options{}, func(t *testing.T, c *clustertest.Cluster) {
		puts(5)(t, c)
		if _, err := c.Client(0).MemberAddAsLearner(t.Context(), []string{"http://127.0.0.1:1"}); err != nil {
			t.Fatal(err)
		}
		puts(5)(t, c)
	}},
}

func v2put(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.Endpoint(0)+"/v2/keys/old?value=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode >= 300 {
		t.Fatalf("v2 put: %s %v", resp.Status, err)
	}
}

// agree asks for the prediction, then starts the server on a copy.
func agree(t *testing.T, c *clustertest.Cluster, opener string) {
	t.Helper()
	dir := evidencetest.Copy(t, c.DataDir(0))
	to, err := preflight.ParseVersion(opener)
	if err != nil {
		t.Fatal(err)
	}
	r, err := preflight.Run(t.Context(), evidence.Spec{Name: "node1", Where: dir}, to, preflight.Options{})
	if err != nil {
		t.Fatal(err)
	}
	said, boots := start(t, c, dir, opener)
	if r.Boots != release.AnswerOf(boots) {
		t.Fatalf("foretold %v (%s), boots %v: %s\n%+v", r.Boots, r.Stops, boots, said, r.StopsAt())
	}
	if s := r.StopsAt(); s != nil && !strings.Contains(strings.ToLower(said), core(s.Server)) {
		t.Errorf("foretold %q, the server says %q", s.Server, said)
	}
}

// core is the part of the server's words that does not depend on the case.
func core(s string) string {
	s = strings.ToLower(strings.TrimPrefix(s, "panic: "))
	if _, tail, ok := strings.Cut(s, "validate schema: "); ok {
		s = tail
	}
	s, _, _ = strings.Cut(s, " (proto")
	s, _, _ = strings.Cut(s, " (current version")
	return s
}

// start runs the server on the copy until it answers or ends, and returns what its log holds.
func start(t *testing.T, c *clustertest.Cluster, dir, version string) (string, bool) {
	t.Helper()
	server, err := node.External(t.Context(), clustertest.Server(t, version))
	if err != nil {
		t.Fatal(err)
	}
	box, err := node.New(t.Context(), node.Options{Dir: filepath.Join(t.TempDir(), "box"), Server: server,
		UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), clustertest.Patience)
	defer cancel()
	m, err := box.Start(ctx, node.MemberConfig{Name: "node1", DataDir: dir, PeerURLs: []string{c.PeerURL(0)},
		ClientURLs: []string{c.Endpoint(0)}, InitialCluster: "node1=" + c.PeerURL(0)})
	if err != nil {
		t.Fatal(err)
	}
	err = m.Ready(ctx)
	var ended *node.StartError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return logOf(t, m), err == nil
}

func logOf(t *testing.T, m *node.Member) string {
	t.Helper()
	b, err := os.ReadFile(m.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), `\"`, `"`) // quotes inside of JSON lines
}
