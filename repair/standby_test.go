package repair

import (
	"slices"
	"strings"
	"testing"
)

// standbyPlan is a plan to replace node2, and node3 if n is 5, with node2's successor on another host.
func standbyPlan(t *testing.T, n int) *Plan {
	t.Helper()
	p := fakePlan(t, n, "node2")
	pl := &planner{p: p, o: PlanOptions{Standby: []Standby{{Name: "node9", URL: "http://node9:2380"}}}}
	if err := pl.standbys(); err != nil {
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
	if w := p.Way(Live).Why; !strings.Contains(w, "one voter fewer from the stop of each of node2") ||
		!strings.Contains(w, "--standby NAME=PEER_URL") {
		t.Error(w)
	}
	if w := newFake(t, standbyPlan(t, 3)).r.plan.Way(Live).Why; !strings.Contains(w,
		"no voter fewer while node2 is replaced") {
		t.Error(w)
	}
}

func TestStandbyRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    Standby
		with func(*Plan)
		want string
	}{
		{"nothing is replaced", Standby{Name: "node9", URL: "http://node9:2380"},
			func(p *Plan) { p.Members[1].Action = Keep }, "no member is left"},
		{"another one is meant", Standby{Name: "node9", URL: "http://node9:2380", For: "node3"}, nil,
			"node3 is not replaced by this plan"},
		{"the name is taken", Standby{Name: "node3", URL: "http://node9:2380"}, nil, "another member has the name or " +
			"the peer URL"},
		{"the URL is taken", Standby{Name: "node9", URL: "http://node2:2380"}, nil, "another member has the name or " +
			"the peer URL"},
		{"no learners", Standby{Name: "node9", URL: "http://node9:2380"}, func(p *Plan) { p.Cluster.Minor = 3 },
			"etcd 3.3 does not know"},
		{"not while it runs", Standby{Name: "node9", URL: "http://node9:2380"}, func(p *Plan) { p.Mode = Clone },
			"this plan is to clone"},
	} {
		p := fakePlan(t, 3, "node2")
		if tc.with != nil {
			tc.with(p)
		}
		err := (&planner{p: p, o: PlanOptions{Standby: []Standby{tc.s}}}).standbys()
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestParseStandby(t *testing.T) {
	for text, want := range map[string]Standby{
		"node4=https://10.0.0.4:2380":      {Name: "node4", URL: "https://10.0.0.4:2380"},
		"node2:node4=http://10.0.0.4:2380": {Name: "node4", URL: "http://10.0.0.4:2380", For: "node2"},
		"node4":                            {},
		"=http://10.0.0.4:2380":            {},
		":node4=http://10.0.0.4:2380":      {},
		"node4=10.0.0.4:2380":              {},
		"node4=ftp://10.0.0.4:2380":        {},
		"https://10.0.0.4:2380":            {},
		"node2:=http://10.0.0.4:2380":      {},
		"node4=http://":                    {},
		"node4=http://[::1]:2380":          {Name: "node4", URL: "http://[::1]:2380"},
	} {
		got, err := ParseStandby(text)
		if got != want || (err == nil) != (want != Standby{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
