package run

import (
	"slices"
	"testing"

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
