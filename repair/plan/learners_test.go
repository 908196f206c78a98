package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// stuckLearner adds what M10 says of the learner node4.
func stuckLearner(r *compare.Report) {
	found(r, check.M10, check.ClassMembership, "node4", "node4: the learner does not catch up")
}

// TestLearners: a learner is left alone while it makes progress, and started or removed where it does not.
func TestLearners(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(r *compare.Report)
		o      plan.Options
		action plan.Action
		why    string
	}{
		"makes progress": {func(*compare.Report) {}, plan.Options{Replace: []string{"node1"}, Best: "node2"},
			plan.Remove, "a learner, and the cluster takes one at a time; add it again when the voters are well"},
		"stuck, with a sound data dir": {stuckLearner, plan.Options{}, plan.Start,
			"node4: the learner does not catch up; it catches up once it runs. When it does not, remove it"},
		"stuck, without a data dir": {func(r *compare.Report) {
			id := r.Members[2].MemberID
			without(r, 2)
			stuckLearner(r)
			last := &r.Findings[len(r.Findings)-1]
			last.Members, last.Facts.About = []string{"node1"}, []dumplog.ID{id}
		}, plan.Options{}, plan.Remove, "add it again, empty, when the voters are well"},
		"stuck, and its database does not know it": {func(r *compare.Report) {
			stuckLearner(r)
			r.Members[2].Membership.Members = nil
		}, plan.Options{}, plan.Remove, "add it again, empty, when the voters are well"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, "m-healthy-3.5", check.ClassMembership, "")
			asLearner(r, 2)
			tc.change(r)
			p := planned(t, r, tc.o)
			i := slices.IndexFunc(p.Members, func(m plan.Member) bool { return m.Learner })
			if m := &p.Members[i]; m.Action != tc.action || !strings.Contains(m.Why, tc.why) {
				t.Errorf("%s: %s, %q; want %s, %q", m.Name, m.Action, m.Why, tc.action, tc.why)
			}
		})
	}
}

// TestLearnersThatAreWell: nothing is done to a learner that makes progress, whatever another one does, and even if its
// data dir was not given.
func TestLearnersThatAreWell(t *testing.T) {
	for why, given := range map[string]bool{"its content is that of node1": true,
		"a learner whose data dir is not among the sources: not judged": false} {
		r := reported(t, "m-healthy-3.5", check.ClassMembership, cause.RemovedMemberDataDir)
		asLearner(r, 2)
		id := r.Members[2].MemberID
		removed := gone(r)
		another(r, "old", func(f *evidence.Facts) { removed(f); f.NodeName = "former" })
		found(r, check.M10, check.ClassMembership, "old", "old: the learner does not catch up")
		r.Findings[len(r.Findings)-1].Facts.About = []dumplog.ID{stranger}
		if !given {
			without(r, 2)
		}
		p := planned(t, r, plan.Options{})
		i := slices.IndexFunc(p.Members, func(m plan.Member) bool { return m.ID == id })
		if m := &p.Members[i]; m.Action != plan.Keep || m.Why != why {
			t.Errorf("%s: %s, %q; want it kept, %q", m.Name, m.Action, m.Why, why)
		}
		for _, w := range p.Ways {
			if got := stepsAbout(p, w.Mode, p.Members[i].Name); len(got) > 0 {
				t.Errorf("%s does %q to it", w.Mode, got)
			}
		}
	}
}

// TestLearnerIsBest: where only a learner holds everything, its database becomes that of all members. It cannot lead,
// and a forced start does not make it a voter.
func TestLearnerIsBest(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassDataDivergence, "")
	asLearner(r, 2)
	r.Best.Members = []string{"node4"}
	for i := range r.Best.Ranking {
		k := &r.Best.Ranking[i]
		k.Lacks.CommittedEntries, k.Reasons = 7, []string{"lacks 7 committed writes"}
		if k.Member == "node4" {
			k.Lacks.CommittedEntries = 0
		}
	}
	p := planned(t, r, plan.Options{})
	if p.Mode != plan.Clone || !strings.Contains(p.Why, "node4 is a learner: it can neither lead nor run alone") {
		t.Errorf("mode %s: %s", p.Mode, p.Why)
	}
	wantActions(t, p, map[string]plan.Action{"node1": plan.Replace, "node2": plan.Replace, "node4": plan.Best})
	if w := p.Way(plan.Live); w.Possible || !strings.Contains(w.Why, "cannot lead; name a voter with --best") {
		t.Errorf("live %v: %s", w.Possible, w.Why)
	}
	if m := p.Member("node1"); m.Lacks != 7 || m.Why != "lacks 7 committed writes" {
		t.Errorf("node1 lacks %d: %s", m.Lacks, m.Why)
	}
	// Without node2 and the word that it is lost, its data dir would be overwritten unseen.
	without(r, slices.IndexFunc(r.Sources, func(s compare.Source) bool { return s.Name == "node2" }))
	p = planned(t, r, plan.Options{})
	if p.Mode != plan.RehearseOnly || p.Missing == nil || !slices.Equal(p.Missing.Members, []string{"node2"}) ||
		!strings.HasPrefix(p.Why, "node4 is a learner, whose database only clones can make that of all members, and "+
			"the data dir of node2 is not among the sources") {
		t.Errorf("mode %s (%s), missing %+v", p.Mode, p.Why, p.Missing)
	}
	p = planned(t, r, plan.Options{Gone: []string{"node2"}})
	if p.Mode != plan.Clone || p.Member("node2").Why != "its data dir is lost" {
		t.Errorf("mode %s, node2 %+v", p.Mode, p.Member("node2"))
	}
	if w := p.Way(plan.ForceNewCluster); w.Possible || !strings.Contains(w.Why, "a forced start does not make it a voter") {
		t.Errorf("forced start %v: %s", w.Possible, w.Why)
	}
}

// TestVoterBeforeLearner: of members that are equally good a voter is kept.
func TestVoterBeforeLearner(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassMembership, "")
	asLearner(r, 0)
	r.Best.Members = []string{"node1", "node2", "node4"}
	p := planned(t, r, plan.Options{Replace: []string{"node4"}})
	if p.Best.Name != "node2" || !slices.Equal(p.Best.Equals, []string{"node4", "node1"}) {
		t.Errorf("keeps %s, as good are %q; want node2, a voter", p.Best.Name, p.Best.Equals)
	}
	if hasCaution(p, "as good as") {
		t.Errorf("a learner, or a member that is replaced, is offered for --best: %q", p.Cautions)
	}
	p = planned(t, r, plan.Options{Replace: []string{"node1"}})
	if !hasCaution(p, "node4 is as good as node2; --best takes another one") {
		t.Errorf("cautions %q", p.Cautions)
	}
}

// TestForcedStartDropsLearners: a learner is no member of the cluster of one that a forced start makes.
func TestForcedStartDropsLearners(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassMembership, "")
	for i := range r.Members {
		ms := &r.Members[i].Membership
		ms.Voters = append(ms.Voters, 0xd1, 0xd2)
	}
	asLearner(r, 2)
	brokenDB(r, 1)
	p := planned(t, r, plan.Options{Best: "node1", Gone: []string{"d1", "d2"}})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Best, "node2": plan.Replace, "node4": plan.Remove,
		"d1": plan.Replace, "d2": plan.Replace})
	if p.Mode != plan.ForceNewCluster || len(stepsAbout(p, plan.ForceNewCluster, "node4")) > 0 {
		t.Errorf("mode %s: %s", p.Mode, p.Why)
	}
	r.Findings = r.Findings[:len(r.Findings)-1]
	r.Members[1].DB = r.Members[0].DB
	p = planned(t, r, plan.Options{Best: "node1", Gone: []string{"d1", "d2"}})
	m, l := p.Member("node2"), p.Member("node4")
	if p.Mode != plan.ForceNewCluster || m.Action != plan.Replace || l.Action != plan.Remove ||
		!strings.HasSuffix(m.Why, "; a forced start drops it from the member list, so it comes back empty") {
		t.Errorf("mode %s, node2 %s: %s, node4 %s: %s", p.Mode, m.Action, m.Why, l.Action, l.Why)
	}
}
