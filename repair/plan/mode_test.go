package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// modeCase is a report, and what is recommended for it.
type modeCase struct {
	change func(r *compare.Report)
	o      plan.Options
	mode   plan.Mode
	why    string
	// actions are those of the members, nil if they do not matter.
	actions map[string]plan.Action
	// not are parts of what the ways that are not possible say.
	not map[plan.Mode]string
}

func modeCases() map[string]modeCase {
	alone := func(r *compare.Report) { without(r, 2); without(r, 1) }
	ofOne := func(r *compare.Report) {
		for i := range r.Members {
			r.Members[i].Membership.Voters = r.Members[0].Membership.Voters[:1]
		}
		r.Members[0].MemberID = r.Members[0].Membership.Voters[0]
	}
	return map[string]modeCase{
		"all can be started": {o: plan.Options{Replace: []string{"node2"}}, mode: plan.Live,
			why: "3 of 3 voters can be started, 2 are needed: the cluster can be repaired while it runs",
			not: map[plan.Mode]string{plan.ForceNewCluster: "not needed: a majority can be started"}},
		"two can be started": {change: func(r *compare.Report) { brokenDB(r, 2) }, mode: plan.Live,
			why:     "2 of 3 voters can be started, 2 are needed",
			actions: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node4": plan.Replace}},
		"one can be started, all are at hand": {change: func(r *compare.Report) { brokenDB(r, 2); brokenDB(r, 1) },
			mode: plan.Clone, why: "only 1 of 3 voters can be started, 2 are needed: the cluster has no quorum, so new " +
				"data dirs with the same IDs are written for all members",
			actions: map[string]plan.Action{"node1": plan.Best, "node2": plan.Replace, "node4": plan.Replace},
			not:     map[plan.Mode]string{plan.Live: "1 of 3 voters can be started, 2 are needed for a quorum"}},
		"one is left": {change: alone, o: plan.Options{Gone: []string{"node2", "node4"}}, mode: plan.ForceNewCluster,
			why:     "only 1 of 3 voters can be started, 2 are needed: the best member continues alone",
			actions: map[string]plan.Action{"node1": plan.Best, "node2": plan.Replace, "node4": plan.Replace}},
		"the best cannot be started": {change: func(r *compare.Report) {
			alone(r)
			r.Members[0].WAL = purgedWithoutSnapshot(r.Members[0].WAL)
			r.Members[0].Snapshots = nil
		}, o: plan.Options{Best: "node1", Gone: []string{"node2", "node4"}}, mode: plan.Clone,
			why: "node1 cannot be started, but its database is sound: new data dirs are written from it",
			not: map[plan.Mode]string{plan.ForceNewCluster: "node1 cannot be started: ",
				plan.Reseed: "node1 cannot be started: "}},
		"a cluster of one": {change: ofOne, o: plan.Options{Best: "node1", Replace: []string{"node2"}}, mode: plan.Live,
			why: "node1 is a cluster of one and can decide alone: the others come to it while it runs"},
		"no evidence": {change: func(r *compare.Report) {
			r.Verdict.Health, r.Verdict.Class = check.HealthUnknown, check.ClassInconclusive
			r.Verdict.Summary = "a log is missing"
		}, o: plan.Options{Best: "node1", Replace: []string{"node2"}}, mode: plan.RehearseOnly,
			why: "the evidence does not suffice to change a cluster: a log is missing"},
		"a torn copy": {change: func(r *compare.Report) { r.Verdict.Class = check.ClassTornCopy },
			o: plan.Options{Replace: []string{"node2"}}, mode: plan.RehearseOnly,
			why: "the evidence does not suffice to change a cluster"},
		"another cluster": {change: func(r *compare.Report) { r.Members[2].ClusterID = 0xc9 },
			o: plan.Options{Best: "node1"}, mode: plan.Live,
			actions: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node4": plan.Replace}},
	}
}

// purgedWithoutSnapshot is a log that starts after entry 1: a server needs a raft snapshot to start on it.
func purgedWithoutSnapshot(of *evidence.WALFacts) *evidence.WALFacts {
	w := *of
	w.FirstIndex, w.Snapshots = 51, nil
	w.Segments = append(w.Segments[:0:0], w.Segments...)
	w.Segments[0].First = 51
	return &w
}

// TestModes: what is recommended follows from who can be started, and the other ways say why they are not possible.
func TestModes(t *testing.T) {
	for name, tc := range modeCases() {
		t.Run(name, func(t *testing.T) {
			r := reported(t, "m-healthy-3.5", check.ClassDBDamage, "")
			if tc.change != nil {
				tc.change(r)
			}
			p := planned(t, r, tc.o)
			if p.Mode != tc.mode || !strings.Contains(p.Why, tc.why) {
				t.Errorf("mode %s: %s; want %s: %s", p.Mode, p.Why, tc.mode, tc.why)
			}
			if tc.actions != nil {
				wantActions(t, p, tc.actions)
			}
			for mode, why := range tc.not {
				if w := p.Way(mode); w.Possible || !strings.Contains(w.Why, why) || len(w.Steps) > 0 {
					t.Errorf("%s is possible: %v, %s; want %q", mode, w.Possible, w.Why, why)
				}
			}
			wantWholeSteps(t, p)
			if first := &p.Ways[0]; p.Mode == plan.RehearseOnly {
				if p.Tries != plan.Reseed || first.Recommended {
					t.Errorf("tries %q, recommends %+v", p.Tries, first)
				}
			} else if first.Mode != p.Mode || !first.Possible || !first.Recommended {
				t.Errorf("the first way is %s, possible %v", first.Mode, first.Possible)
			}
		})
	}
}

// TestWhoIsKept: contents decide who is kept. The operator is asked where they do not.
func TestWhoIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(r *compare.Report)
		id     cause.ID
		o      plan.Options
		reason string
		hint   string
	}{
		"none is said to be best": {change: func(r *compare.Report) { r.Best.Members, r.Best.Why = nil, "two histories" },
			reason: "which member to keep is undecided: two histories", hint: "--best"},
		"different clusters": {change: func(r *compare.Report) { r.Best = nil },
			reason: "the sources belong to different clusters", hint: "name the member whose cluster is kept with --best"},
		"different clusters, one of which can be kept": {change: func(r *compare.Report) {
			r.Best, r.Members[0].DB, r.Members[2].WAL = nil, nil, nil
		}, reason: "the sources belong to different clusters", hint: "name the member whose cluster is kept with --best"},
		"different clusters, none of which can be kept": {change: func(r *compare.Report) {
			r.Best, r.Members[0].DB, r.Members[2].WAL = nil, nil, nil
			brokenDB(r, 1)
		}, reason: "; no data dir can be kept: node1 has no database and log that can be read, node2 cannot serve: ",
			hint: "make new data dirs from a backup with etcd-medic restore"},
		"none can be kept, and one was chosen": {change: func(r *compare.Report) {
			r.Members[0].DB, r.Members[1].DB, r.Members[2].WAL = nil, nil, nil
		}, o: plan.Options{Best: "node1"}, reason: "--best node1 has no database and log that can be read; no data dir can be " +
			"kept: node2 has", hint: "make new data dirs from a backup with etcd-medic restore"},
		"the chosen one has no log": {change: func(r *compare.Report) { r.Members[1].WAL = nil },
			o: plan.Options{Best: "node2"}, reason: "--best node2 has no database and log that can be read",
			hint: "restore from a backup"},
		"the chosen one has no database": {change: func(r *compare.Report) { r.Members[1].DB = nil },
			o: plan.Options{Best: "node2"}, reason: "--best node2 has no database and log that can be read"},
		"the chosen one is damaged": {change: func(r *compare.Report) { brokenDB(r, 1) },
			o: plan.Options{Best: "node2"}, reason: "--best node2 cannot serve: the server refuses its database: 3 undecodable rows of bucket key"},
		"the chosen one is a backup": {change: func(r *compare.Report) { r.Sources[1].Kind = evidence.KindBackup },
			o: plan.Options{Best: "node2"}, reason: "--best node2 is not a data dir (backup)",
			hint: "choose one of the data dirs"},
		"the chosen one is no member": {change: func(r *compare.Report) { another(r, "old", gone(r)) },
			o:      plan.Options{Best: "old"},
			reason: "old is not a member of the newest configuration that its cluster committed",
			hint:   "choose one of them with --best"},
		"a source that cannot be read": {change: func(r *compare.Report) { r.Sources[1].Error = "input/output error" },
			reason: "source node2 cannot be read: input/output error", hint: "leave it out"},
		"a source that changed": {change: func(r *compare.Report) { r.InputsUnchanged = false },
			reason: "a source changed while it was read", hint: "plan again on the copy"},
		"no data dir": {change: func(r *compare.Report) {
			for i := range r.Sources {
				r.Sources[i].Kind = evidence.KindBackup
			}
		}, reason: "none of the sources is a data dir", hint: "give the data dirs of the members"},
		"no evidence": {change: func(r *compare.Report) {
			r.Verdict.Health, r.Verdict.Summary = check.HealthUnknown, "a log is missing"
		}, reason: "the evidence does not suffice: a log is missing", hint: "--best"},
		"a name that nobody has": {o: plan.Options{Replace: []string{"node9"}},
			reason: "node9 is not a member that the sources name", hint: "the members are node1, node2, node4"},
		"a lost member that nobody is": {o: plan.Options{Gone: []string{"node9"}},
			reason: "node9 is not a member that the sources name", hint: "the members are node1, node2, node4"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, "m-healthy-3.5", check.ClassDBDamage, tc.id)
			if tc.change != nil {
				tc.change(r)
			}
			p, err := plan.From(r, nil, tc.o)
			if p != nil {
				t.Errorf("a plan: %s, %v", p.Mode, actions(p))
			}
			refusedWith(t, err, tc.reason, tc.hint)
		})
	}
}

// TestOperatorAgainstContent: --best of another member is done, and the plan says who would be kept by content.
func TestOperatorAgainstContent(t *testing.T) {
	r := reported(t, "m-healthy-3.5", check.ClassDataDivergence, "")
	r.Best.Members, r.Best.Why = []string{"node1"}, "it holds every committed write"
	p := planned(t, r, plan.Options{Best: "node2", Replace: []string{"node4"}})
	if p.Best.By != "operator" || !strings.HasPrefix(p.Best.Why, "chosen with --best") ||
		!hasCaution(p, "by content node1 would be kept: it holds every committed write") {
		t.Errorf("%s by %s (%s), cautions %q", p.Best.Name, p.Best.By, p.Best.Why, p.Cautions)
	}
	p = planned(t, r, plan.Options{Best: "node1", Replace: []string{"node4"}})
	if hasCaution(p, "by content") {
		t.Errorf("node1 is the best by content, too: %q", p.Cautions)
	}
}

// TestNothingToRepair: without work there is no plan, and the hint says what to do instead.
func TestNothingToRepair(t *testing.T) {
	for class, hint := range map[check.Class]string{
		check.ClassHealthy:         "nothing to do; etcd-medic repair plan --replace NAME plans a reseed all the same",
		check.ClassLagging:         "start the lagging member: it catches up on its own",
		check.ClassUncommittedTail: "start all members: raft commits or replaces what is above the commit index",
		check.ClassCompactionSkew:  "start all members: the compaction is finished by the server",
	} {
		_, err := plan.From(reported(t, "m-healthy-3.5", class, ""), nil, plan.Options{})
		refusedWith(t, err, "nothing to repair: "+string(class), hint)
	}
	r := reported(t, "m-healthy-3.5", check.ClassAlarm, "")
	r.Next = []compare.Next{{Text: "free room, and disarm the alarm"}}
	_, err := plan.From(r, nil, plan.Options{})
	refusedWith(t, err, "nothing to repair: alarm", "free room, and disarm the alarm")
	// What is wrong on all members is not nothing.
	r = reported(t, "m-healthy-3.5", check.ClassDataDivergence, "")
	_, err = plan.From(r, nil, plan.Options{})
	refusedWith(t, err, "no member has other content to repair node1 with: data-divergence", "restore from a backup")
	r.Next = []compare.Next{{Text: "stop writes"}, {Text: "make a backup", Command: shell.Format("etcd-medic rebuild -o x")}}
	_, err = plan.From(r, nil, plan.Options{})
	refusedWith(t, err, "no member has other content", "make a backup: etcd-medic rebuild -o x")
	r = reported(t, "m-healthy-3.5", check.ClassAlarm, "")
	// A CORRUPT alarm has to be disarmed.
	r.Members[0].Alarms = []evidence.AlarmFacts{{MemberID: 0xa1, Alarm: "CORRUPT"}}
	p := planned(t, r, plan.Options{})
	if !hasCaution(p, "alarm CORRUPT is raised for member a1: its ID is not evidence") ||
		p.Way(plan.Live).Steps[len(p.Way(plan.Live).Steps)-2].Kind != plan.StepDisarm {
		t.Errorf("cautions %q, steps %+v", p.Cautions, p.Way(plan.Live).Steps)
	}
}

// TestDisarmOnlyCorrupt: etcdctl disarms all alarms at once, so nothing is disarmed for NOSPACE alone, and next to
// CORRUPT a note says it.
func TestDisarmOnlyCorrupt(t *testing.T) {
	for _, tc := range []struct {
		alarms      []string
		steps, said bool
	}{{[]string{"NOSPACE"}, false, false}, {[]string{"CORRUPT"}, true, false}, {[]string{"NOSPACE", "CORRUPT"}, true,
		true}} {
		r := reported(t, "m-healthy-3.6", check.ClassAlarm, "")
		r.Members[0].Alarms = nil
		for _, a := range tc.alarms {
			r.Members[0].Alarms = append(r.Members[0].Alarms, evidence.AlarmFacts{MemberID: 0xa1, Alarm: a})
		}
		steps := planned(t, r, plan.Options{Best: "node1", Replace: []string{"node2"}}).Way(plan.Live).Steps
		i := slices.IndexFunc(steps, func(s plan.Step) bool { return s.Kind == plan.StepDisarm })
		if (i >= 0) != tc.steps {
			t.Errorf("%q: step %d disarms", tc.alarms, i)
		}
		if i >= 0 && (len(steps[i].ByHand) == 2) != tc.said {
			t.Errorf("%q: by hand %+v", tc.alarms, steps[i].ByHand)
		}
	}
}
