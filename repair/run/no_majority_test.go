package run

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestVoterIsStartedByTheNextRun: without learners (3.3) a run that ends between member add and the start of that
// member leaves two voters, one of which runs. The next run starts the other one before it checks anything else.
func TestVoterIsStartedByTheNextRun(t *testing.T) {
	r := newLiveRun(t, 2)
	r.p.Cluster.Minor = 3
	if err := r.p.LayOut(); err != nil {
		t.Fatal(err)
	}
	r.o.Live.QuorumWait = time.Second
	enough, act := errors.New("enough"), r.o.Live.HostActions
	r.o.Live.HostActions = func(ctx context.Context, s HostStep) error {
		if s.Action == "start" {
			return enough
		}
		return act(ctx, s)
	}
	if _, err := r.apply(t); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if r.c.decides() || slices.Contains(r.c.acts, "start node2") {
		t.Fatalf("acts %q, has a majority: %v", r.c.acts, r.c.decides())
	}
	r.c.leader = 0
	r.o.Live.HostActions = act
	out, err := r.apply(t)
	if err != nil || !out.Reached || !out.Resumed || out.Way != plan.Live {
		t.Errorf("%v, %+v", err, out)
	}
	if !slices.Contains(r.c.acts, "start node2") {
		t.Errorf("acts %q", r.c.acts)
	}
}
