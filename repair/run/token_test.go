package run

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestTokenRunsOut: a refused token is replaced by that of a new login, whatever step is at work.
func TestTokenRunsOut(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	m := c.r.plan.Member("node1")
	for name, ask := range map[string]func() error{
		"status": func() error { _, err := c.r.goal(t.Context()); return err },
		"read":   func() error { return c.r.linearizable(t.Context(), m) },
		"list":   func() error { _, err := c.r.list(t.Context()); return err },
	} {
		c.expired, c.forgot = map[uint64]bool{1: true}, nil
		if err := ask(); err != nil || !slices.Equal(c.forgot, []string{"node1"}) {
			t.Errorf("%s: %v, forgot %q", name, err, c.forgot)
		}
	}
}

// TestTokenRunsOutInTheMiddle: the repair continues when tokens run out at any host step.
func TestTokenRunsOutInTheMiddle(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.before = func(string, *plan.Member) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.expired = map[uint64]bool{1: true, 3: true}
	}
	if err := c.r.run(t.Context()); err != nil || len(c.lost) > 0 || !slices.Contains(c.forgot, "node1") {
		t.Fatalf("%v; lost by %q, forgot %q", err, c.lost, c.forgot)
	}
}

// TestTokensOff: a new member that refuses every token is restarted once, if its servers can have the defect and the
// cluster can do without it.
func TestTokensOff(t *testing.T) {
	restart := []string{"start node2", "stop node2", "start node2"}
	for name, c := range map[string]struct {
		minor, voters int
		open          bool // the status needs no token
		down          uint64
		want          []string // the last acts about node2
		fails         string
	}{
		"3.3":                   {minor: 3, voters: 3, want: restart},
		"3.5":                   {minor: 5, voters: 3, want: restart},
		"3.5 with its status":   {minor: 5, voters: 3, open: true, want: restart},
		"3.6 lacks the defect":  {minor: 6, voters: 3, want: []string{"start node2"}, fails: "invalid auth token"},
		"no majority is left":   {minor: 3, voters: 3, down: 3, want: []string{"start node2"}, fails: "voters"},
		"only the leader votes": {minor: 3, voters: 2, want: []string{"start node2"}, fails: "voters"},
	} {
		t.Run(name, func(t *testing.T) {
			p := fakePlan(t, c.voters, "node2")
			p.Cluster.Minor = c.minor
			f := newFake(t, p)
			f.off, f.openStatus = map[uint64]bool{}, c.open
			f.r.live.QuorumWait = 200 * time.Millisecond
			f.before = func(what string, m *plan.Member) {
				if c.down != 0 && what == "start" {
					f.set(c.down, false)
				}
			}
			err := f.r.run(t.Context())
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
			var acts []string
			for _, a := range f.acts {
				if a == "start node2" || a == "stop node2" {
					acts = append(acts, a)
				}
			}
			if acts = acts[slices.Index(acts, "start node2"):]; !slices.Equal(acts, c.want) {
				t.Errorf("acts %q, want %q", acts, c.want)
			}
		})
	}
}

// TestTokensOffAgain: a member that was restarted for its tokens is not restarted again, also not by a later run.
func TestTokensOffAgain(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.journal(t, filepath.Join(t.TempDir(), "again.yaml"), func(Record, bool) {})
	m := c.r.plan.Member("node2")
	if w := c.r.watchTokens(m); w.limit == 0 {
		t.Error("not tracked at first")
	}
	if err := c.r.note("wait-node2", restartedFor(m), "yes"); err != nil {
		t.Fatal(err)
	}
	if w := c.r.watchTokens(m); w.limit != 0 {
		t.Error("tracked after a restart")
	}
}

// TestTokenWatch: only refusals without anything else between them count.
func TestTokenWatch(t *testing.T) {
	refused := notYet{rpctypes.ErrInvalidAuthToken}
	off := true
	w := tokenWatch{limit: time.Hour, refuses: func() bool { return off }}
	if err := w.look(refused); !errors.Is(err, error(refused)) || w.since.IsZero() {
		t.Fatalf("first: %v since %v", err, w.since)
	}
	w.since = time.Now().Add(-2 * time.Hour)
	if err := w.look(errSilent); !errors.Is(err, errSilent) || !w.since.IsZero() {
		t.Errorf("another error between: %v since %v", err, w.since)
	}
	w.since = time.Now().Add(-2 * time.Hour)
	var p permanent
	if err := w.look(notYet{rpctypes.ErrInvalidAuthToken}); !errors.As(err, &p) || !errors.Is(p.err, errTokensOff) {
		t.Errorf("too long: %v", err)
	}
	if err := w.look(context.DeadlineExceeded); !errors.As(err, &p) {
		t.Errorf("a client that asks for other tokens until the time limit: %v", err)
	}
	off = false
	if err := w.look(context.DeadlineExceeded); errors.As(err, &p) || time.Since(w.since) > time.Minute {
		t.Errorf("for another reason: %v since %v", err, w.since)
	}
	c := newFake(t, fakePlan(t, 3, "node2"))
	for minor, want := range map[int]string{3: "until they are restarted", 6: "does not answer"} {
		c.r.plan.Cluster.Minor = minor
		if got := c.r.silence(c.r.plan.Member("node3"), refused); !strings.Contains(got, want) {
			t.Errorf("3.%d: %q, want %q", minor, got, want)
		}
	}
	w.limit = 0
	if err := w.look(refused); errors.As(err, &p) {
		t.Errorf("not tracked: %v", err)
	}
}
