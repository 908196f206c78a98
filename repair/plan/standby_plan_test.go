package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// node5 and node6 are new members on other hosts.
var (
	node5 = plan.Standby{Name: "node5", URL: "http://10.0.0.5:2380"}
	node6 = plan.Standby{Name: "node6", URL: "http://10.0.0.6:2380"}
)

func standsFor(s plan.Standby, old string) plan.Standby {
	s.For = old
	return s
}

// TestStandbyTakesAPlace: each new member takes the place of one that is replaced, the named one or the next one that
// has none yet.
func TestStandbyTakesAPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		standby []plan.Standby
		// takes are the new members by the name of the member that they replace.
		takes map[string]string
		// why are parts of what the plan says of the number of voters.
		why []string
	}{
		"the first one": {[]plan.Standby{node5}, map[string]string{"node2": "node5"}, []string{
			"there is no voter fewer while node2 is replaced",
			"one voter fewer from the stop of each of node4 until it is promoted again"}},
		"the named one": {[]plan.Standby{standsFor(node5, "node4")}, map[string]string{"node4": "node5"}, []string{
			"there is no voter fewer while node4 is replaced", "from the stop of each of node2 until"}},
		"one each": {[]plan.Standby{node5, node6}, map[string]string{"node2": "node5", "node4": "node6"},
			[]string{"there is no voter fewer while node2, node4 are replaced"}},
		"the named one, and the one that is left": {[]plan.Standby{standsFor(node5, "node4"), node6},
			map[string]string{"node4": "node5", "node2": "node6"}, nil},
		"none": {nil, nil, []string{"from the stop of each of node2, node4 until"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, "m-healthy-3.5", check.ClassHealthy, "")
			p := planned(t, r, plan.Options{Replace: []string{"node2", "node4"}, Standby: tc.standby})
			live := p.Way(plan.Live)
			for _, why := range tc.why {
				if !strings.Contains(live.Why, why) {
					t.Errorf("the way says %q, want %q", live.Why, why)
				}
			}
			if len(tc.takes) == 2 && strings.Contains(live.Why, "one voter fewer") {
				t.Errorf("both have a standby, and the way says %q", live.Why)
			}
			for _, old := range []string{"node2", "node4"} {
				wantStandby(t, p, old, tc.takes[old])
			}
			wantWholeSteps(t, p)
		})
	}
}

// wantStandby checks who takes a member's place, in the members and in the steps; "" for itself.
func wantStandby(t *testing.T, p *plan.Plan, old, by string) {
	t.Helper()
	if got := p.Member(old).Standby; got != by {
		t.Errorf("%s takes the place of %s, want %q", got, old, by)
	}
	in := []string{"add-learner", "start-empty", "wait", "promote"}
	out := append([]string{"save", "stop", "remove", "set-aside"}, in...)
	if by != "" { // the new member votes before the old one is removed
		out = []string{"save", "remove", "stop", "set-aside"}
		m := p.Member(by)
		if m == nil || m.Action != plan.StandIn || m.For != old || !strings.Contains(m.Why, "takes the place of "+old) {
			t.Fatalf("the new member is %+v", m)
		}
		if got := stepsAbout(p, plan.Live, by); !slices.Equal(got, in) {
			t.Errorf("steps of %s: %q, want %q", by, got, in)
		}
	}
	if got := stepsAbout(p, plan.Live, old); !slices.Equal(got, out) {
		t.Errorf("steps of %s: %q, want %q", old, got, out)
	}
	steps := p.Way(plan.Live).Steps
	at := func(kind plan.StepKind, member string) int {
		return slices.IndexFunc(steps, func(s plan.Step) bool { return s.Kind == kind && s.Member == member })
	}
	if by != "" && at(plan.StepPromote, by) > at(plan.StepRemove, old) {
		t.Errorf("%s is removed before %s votes", old, by)
	}
}

// TestStandbyRefused: a standby that cannot take a place is refused with what to do.
func TestStandbyRefused(t *testing.T) {
	replace := []string{"node2", "node4"}
	for name, tc := range map[string]struct {
		change func(r *compare.Report)
		o      plan.Options
		reason string
		hint   string
	}{
		"nobody is left": {o: plan.Options{Replace: replace[:1], Standby: []plan.Standby{node5, node6}},
			reason: "no member is left that the standby node6 could take the place of", hint: "--replace"},
		"a member that stays": {o: plan.Options{Replace: replace, Standby: []plan.Standby{standsFor(node5, "node1")}},
			reason: "node1 is not replaced by this plan", hint: "--replace"},
		"two for one member": {o: plan.Options{Replace: replace, Standby: []plan.Standby{standsFor(node5, "node4"),
			standsFor(node6, "node4")}}, reason: "node4 is not replaced by this plan, or has a standby already"},
		"the name of a member": {o: plan.Options{Replace: replace, Standby: []plan.Standby{{Name: "node1",
			URL: node5.URL}}}, reason: "of the standby node1=http://10.0.0.5:2380", hint: "another name"},
		"the name of another standby": {o: plan.Options{Replace: replace, Standby: []plan.Standby{node5, {Name: "node5",
			URL: node6.URL}}}, reason: "another member has the name or the peer URL"},
		"the peer URL of another standby": {o: plan.Options{Replace: replace, Standby: []plan.Standby{node5,
			{Name: "node6", URL: node5.URL}}}, reason: "another member has the name or the peer URL"},
		"a cluster that does not run": {change: func(r *compare.Report) { without(r, 2); without(r, 1) },
			o:      plan.Options{Gone: replace, Standby: []plan.Standby{node5}},
			reason: "this plan is to force-new-cluster", hint: "leave --standby out"},
		"a release without learners": {change: func(r *compare.Report) {
			old := "3.3"
			for i := range r.Members {
				r.Members[i].WroteBy.Etcd = &old
			}
		}, o: plan.Options{Replace: replace, Standby: []plan.Standby{node5}},
			reason: "a standby joins as a learner, which etcd 3.3 does not know", hint: "leave --standby out"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, "m-healthy-3.5", check.ClassHealthy, "")
			if tc.change != nil {
				tc.change(r)
			}
			_, err := plan.From(r, nil, tc.o)
			refusedWith(t, err, tc.reason, tc.hint)
		})
	}
}

// TestLayOutWithStandby: a plan whose members are known gets its ways, and the members that join.
func TestLayOutWithStandby(t *testing.T) {
	known := func() *plan.Plan {
		return &plan.Plan{Mode: plan.Live, Best: plan.Choice{Name: "node1", ID: 1},
			Cluster: plan.Cluster{ID: 0xc1, Minor: 6, Voters: 3, Quorum: 2, Startable: 3}, Members: []plan.Member{
				{Name: "node1", ID: 1, Source: "node1", Action: plan.Best, Startable: true},
				{Name: "node2", ID: 2, Source: "node2", Action: plan.Replace, Startable: true},
				{Name: "node3", ID: 3, Source: "node3", Action: plan.Keep, Startable: true}}}
	}
	p := known()
	if err := p.LayOut(node5); err != nil {
		t.Fatal(err)
	}
	wantStandby(t, p, "node2", "node5")
	if p.Ways[0].Mode != plan.Live || !p.Ways[0].Recommended || p.Ways[0].Steps[0].ID != "01-backup-node1" {
		t.Errorf("the first way is %s, its first step %s", p.Ways[0].Mode, p.Ways[0].Steps[0].ID)
	}
	refusedWith(t, known().LayOut(standsFor(node5, "node3")), "node3 is not replaced by this plan", "--replace")
}
