package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

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

// TestVoterAddedWithoutAnswer: the same where the run was killed before it recorded that the member was added. Servers
// of 3.3 list the members without a majority. For some time the leader does not notice that it has none.
func TestVoterAddedWithoutAnswer(t *testing.T) {
	for _, leader := range []uint64{0, 1} {
		r := newLiveRun(t, 2)
		r.p.Cluster.Minor, r.c.ownList = 3, true
		if err := r.p.LayOut(); err != nil {
			t.Fatal(err)
		}
		r.o.Live.QuorumWait = time.Second
		killed := errors.New("killed")
		r.c.fail = func(call string) error {
			if call == "MemberAdd of 1" {
				return never("%w", killed)
			}
			return nil
		}
		if _, err := r.apply(t); !strings.Contains(err.Error(), killed.Error()) {
			t.Fatal(err)
		}
		r.c.fail = nil
		r.c.mu.Lock()
		r.c.list = append(r.c.list, &etcdserverpb.Member{ID: 0x77, PeerURLs: r.p.Member("node2").PeerURLs})
		r.c.contents[0x77], r.c.leader = r.c.of(1), leader
		r.c.mu.Unlock()
		out, err := r.apply(t)
		if err != nil || !out.Reached || !out.Resumed {
			t.Errorf("leader %d: %v, %+v", leader, err, out)
		}
		if !slices.Contains(r.c.acts, "start node2") || slices.Contains(r.c.acts, "add http://node2:2380") {
			t.Errorf("leader %d: acts %q", leader, r.c.acts)
		}
	}
}

// TestVoterAddedLate: the member is added although the call that adds it gets no answer; the same run continues.
func TestVoterAddedLate(t *testing.T) {
	p := fakePlan(t, 2, "node2")
	p.Cluster.Minor = 3
	c := newFake(t, p)
	c.ownList, c.late = true, true
	c.r.limits.step, c.r.live.QuorumWait = 500*time.Millisecond, 500*time.Millisecond
	if err := c.r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "node1=http://node1:2380,node2=http://node2:2380"; c.r.j.value("initial:node2") != want {
		t.Errorf("started with %q, want %q", c.r.j.value("initial:node2"), want)
	}
}
