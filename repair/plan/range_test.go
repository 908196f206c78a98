package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestOpenEndOfADamagedLog: a log whose end was overwritten shows no more than a lost one what its member acknowledged.
// A record that was in flight does.
func TestOpenEndOfADamagedLog(t *testing.T) {
	for effect, open := range map[dumplog.StartEffect]bool{dumplog.StartDrops: true, dumplog.StartCuts: false} {
		r := told(t, "m-healthy-3.5", "wal-damage", "quorum-lost")
		w := *r.Members[1].WAL
		w.Damage = []evidence.DamageFacts{{File: w.Segments[0].Name, Kind: string(dumplog.DamageTornTail),
			LostFrom: w.LastIndex + 1, LostTo: w.LastIndex + 1, After: w.LastIndex, OnStart: effect,
			Detail: "the end of the log"}}
		r.Members[1].WAL = &w
		without(r, 2)
		p := planned(t, r, plan.Options{Best: "node1", Gone: []string{"node4"}})
		if got := p.Lost.Open != nil; got != open {
			t.Errorf("%s: open end %+v, want one: %v", effect, p.Lost.Open, open)
		}
	}
}

// TestEveryForcedStartRaisesRevisions: watchers saw more than the member that goes on alone, whether or not every
// committed entry is in a log at hand.
func TestEveryForcedStartRaisesRevisions(t *testing.T) {
	r := told(t, "m-healthy-3.5", "db-damage", "quorum-lost")
	db := *r.Members[1].DB
	db.Undecodable = 3
	r.Members[1].DB = &db
	r.Findings = append(r.Findings, check.Finding{ID: "D03-node2", Check: "D03", Class: "db-damage",
		Severity: check.Error, Members: []string{"node2"}, Title: "node2: rows do not decode"})
	without(r, 2)
	p := planned(t, r, plan.Options{Best: "node1", Gone: []string{"node4"}})
	if p.Mode != plan.ForceNewCluster || p.Lost.Open != nil {
		t.Fatalf("mode %s (%s), open end %+v; want a forced start with every entry at hand", p.Mode, p.Why, p.Lost.Open)
	}
	const raise = "--bump-revision 1000000000 --mark-compacted"
	if !strings.Contains(strings.Join(p.Cautions, "\n"), raise) {
		t.Errorf("no caution says %q: %q", raise, p.Cautions)
	}
	steps := p.Way(plan.ForceNewCluster).Steps
	i := slices.IndexFunc(steps, func(s plan.Step) bool { return s.Kind == plan.StepForceNew })
	if !slices.ContainsFunc(steps[i].ByHand, func(c plan.Command) bool { return strings.Contains(c.Run, raise) }) {
		t.Errorf("the forced start does not say %q", raise)
	}
}
