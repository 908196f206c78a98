package run

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// standbyPlan is a plan to replace node2, and node3 if n is 5, with node2's successor on another host.
func standbyPlan(t *testing.T, n int) *plan.Plan {
	t.Helper()
	p := fakePlan(t, n, "node2")
	if err := p.LayOut(plan.Standby{Name: "node9", URL: "http://node9:2380"}); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStandby: the successor is a voter before the old member goes, and the voters are never fewer.
func TestStandby(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		c := newFake(t, standbyPlan(t, n))
		if err := c.r.run(t.Context()); err != nil || len(c.lost) > 0 {
			t.Fatalf("%d voters: %v; lost by %q", n, err, c.lost)
		}
		promoted, gone := slices.Index(c.acts, "promote http://node9:2380"), slices.Index(c.acts, "remove node2")
		if promoted < 0 || gone < promoted || len(c.list) != n || find(c.list, 2) != nil {
			t.Errorf("%d voters: %q", n, c.acts)
		}
		if f := c.r.fewer(); len(f) != 1 || !strings.Contains(f[0],
			"no voter fewer while node9 took the place of node2") {
			t.Errorf("%q", f)
		}
		if c.down(t.Context(), c.r.plan.Member("node2")) == false || !slices.Contains(c.snapshots, "2") {
			t.Errorf("node2 still runs, or has no snapshot: %q", c.snapshots)
		}
	}
}

// TestStandbyForOneThatIsDown: etcd adds no member while a voter is down, so that one is removed first, and the run
// says so.
func TestStandbyForOneThatIsDown(t *testing.T) {
	c := newFake(t, standbyPlan(t, 3))
	c.set(2, false)
	if err := c.r.run(t.Context()); err != nil || len(c.lost) > 0 {
		t.Fatalf("%v; lost by %q", err, c.lost)
	}
	if f := c.r.fewer(); len(f) != 1 || !strings.Contains(f[0],
		"node2 was down and was removed before node9 was promoted") {
		t.Errorf("%q", f)
	}
}

// TestFewer: at the same peer URL a voter is missing for a while, and the run says for how long.
func TestFewer(t *testing.T) {
	p := fakePlan(t, 3, "node2")
	c := newFake(t, p)
	if err := c.r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := c.r.fewer(); len(f) != 1 || !strings.Contains(f[0], "one voter fewer for ") ||
		!strings.Contains(f[0], "while node2 was replaced, from ") {
		t.Errorf("%q", f)
	}
	if w := p.Way(plan.Live).Why; !strings.Contains(w, "one voter fewer from the stop of each of node2") ||
		!strings.Contains(w, "--standby NAME=PEER_URL") {
		t.Error(w)
	}
	if w := newFake(t, standbyPlan(t, 3)).r.plan.Way(plan.Live).Why; !strings.Contains(w,
		"no voter fewer while node2 is replaced") {
		t.Error(w)
	}
}

func TestStandbyRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    plan.Standby
		with func(*plan.Plan)
		want string
	}{
		{"nothing is replaced", plan.Standby{Name: "node9", URL: "http://node9:2380"},
			func(p *plan.Plan) { p.Members[1].Action = plan.Keep }, "no member is left"},
		{"another one is meant", plan.Standby{Name: "node9", URL: "http://node9:2380", For: "node3"}, nil,
			"node3 is not replaced by this plan"},
		{"the name is taken", plan.Standby{Name: "node3", URL: "http://node9:2380"}, nil,
			"another member has the name or " +
				"the peer URL"},
		{"the URL is taken", plan.Standby{Name: "node9", URL: "http://node2:2380"}, nil,
			"another member has the name or " +
				"the peer URL"},
		{"no learners", plan.Standby{Name: "node9", URL: "http://node9:2380"},
			func(p *plan.Plan) { p.Cluster.Minor = 3 },
			"etcd 3.3 does not know"},
		{"not while it runs", plan.Standby{Name: "node9", URL: "http://node9:2380"},
			func(p *plan.Plan) { p.Mode = plan.Clone },
			"this plan is to clone"},
	} {
		p := fakePlan(t, 3, "node2")
		if tc.with != nil {
			tc.with(p)
		}
		if err := p.LayOut(tc.s); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
