package run

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// slowCluster opens a started member's port late.
type slowCluster struct {
	*fakeCluster
	starts []string
	// initial is the initial cluster of the last start.
	initial string
}

func (c *slowCluster) start(ctx context.Context, m *plan.Member, how startHow) error {
	c.starts, c.initial = append(c.starts, m.Name), how.initialCluster
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = c.fakeCluster.start(ctx, m, how)
	}()
	return nil
}

func (c *slowCluster) ready(ctx context.Context, m *plan.Member) error {
	return c.r.until(ctx, c.r.limits.step, m.Name+" serves", func(ctx context.Context) error {
		return c.fakeCluster.ready(ctx, m)
	})
}

// TestStartedOnce: a member that takes its time to serve is not started a second time, and nobody is asked to. A later
// run starts one that ended meanwhile.
func TestStartedOnce(t *testing.T) {
	c := &slowCluster{fakeCluster: newFake(t, fakePlan(t, 3, "node2"))}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	c.fakeCluster.journal(t, file, func(Record, bool) {})
	c.r.host = c
	all := c.r.steps
	wait := slices.IndexFunc(all, func(s plan.Step) bool { return s.Kind == plan.StepWait })
	c.r.steps = all[:wait]
	if err := c.r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.r.steps = all[:wait+1]
	if err := c.r.run(t.Context()); err != nil || !slices.Equal(c.starts, []string{"node2"}) {
		t.Fatalf("started %q, want node2 once: %v", c.starts, err)
	}
	// It ends; another process of the tool goes on.
	c.set(c.id(c.r.plan.Member("node2")), false)
	c.r.out = &Outcome{}
	want := c.initial
	if err := c.r.note("", "initial:node2", want+",gone=http://gone:2380"); err != nil { // as it was before
		t.Fatal(err)
	}
	if _, err := doWait(t.Context(), c.r, &all[wait]); err != nil || len(c.starts) != 2 {
		t.Errorf("started %q, want node2 twice: %v", c.starts, err)
	}
	if c.initial != want || want == "" {
		t.Errorf("started into %q, the present members are %q", c.initial, want)
	}
}
