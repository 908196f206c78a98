package plan_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// torn makes a member's log end with an unfinished record of the entry after its last one; cut takes more sound entries
// away.
func torn(r *compare.Report, i int, cut uint64) {
	f := &r.Members[i]
	w := *f.WAL
	w.LastIndex -= cut
	w.Damage = []evidence.DamageFacts{{File: w.Segments[0].Name, Kind: string(dumplog.DamageTornTail),
		LostFrom: w.LastIndex + 1, LostTo: w.LastIndex + 1, After: w.LastIndex, OnStart: dumplog.StartCuts,
		Detail: "torn-tail"}}
	f.WAL = &w
	r.Findings = append(r.Findings, check.Finding{ID: "W02-" + f.Name, Check: "W02", Class: "wal-damage",
		Severity: check.Error, Members: []string{f.Name}, Title: f.Name + ": torn-tail"})
}

// TestPlanAllTailsTorn: after a power failure every log ends with a record that was in flight. Servers cut it off:
// there is nothing to plan.
func TestPlanAllTailsTorn(t *testing.T) {
	r := told(t, "m-healthy-3.5", "wal-damage", "wal-torn-tail")
	for i := range r.Members {
		torn(r, i, 0)
	}
	p, err := plan.From(r, nil, plan.Options{})
	if p != nil {
		t.Fatalf("a plan: %+v", p.Members)
	}
	got := wantRefusal(t, err)
	if !strings.Contains(got.Reason, "nothing to repair: node1, node2, node4") ||
		!strings.HasPrefix(got.Hint, "start the members, all of them") {
		t.Errorf("refused with %q, hint %q; want to be told to start them", got.Reason, got.Hint)
	}
}

// TestPlanTornBelowCommit: a tail that is torn below what the member had applied has lost what it promised; that member
// comes back empty.
func TestPlanTornBelowCommit(t *testing.T) {
	r := told(t, "m-healthy-3.5", "wal-damage", "wal-torn-tail")
	torn(r, 0, 0)
	torn(r, 2, 3)
	r.Best.Members = []string{"node2"}
	p := planned(t, r, plan.Options{})
	wantActions(t, p, map[string]plan.Action{"node1": plan.Start, "node2": plan.Best, "node4": plan.Replace})
	if m := p.Member("node1"); !m.Startable || m.Obstacle != "" {
		t.Errorf("node1 %+v, want it startable", m)
	}
	if m := p.Member("node4"); m.Startable || m.Obstacle != plan.ObstacleRefused {
		t.Errorf("node4 %+v, want %s: HardState commits what is gone", m, plan.ObstacleRefused)
	}
	w, hs := *r.Members[2].WAL, *r.Members[2].WAL.HardState
	hs.Commit = w.LastIndex
	w.HardState, r.Members[2].WAL = &hs, &w
	if m := planned(t, r, plan.Options{}).Member("node4"); m.Action != plan.Replace ||
		m.Obstacle != plan.ObstacleForgot {
		t.Errorf("node4 %+v, want %s: its database holds what is gone from the log", m, plan.ObstacleForgot)
	}
}

// TestPlanOfAnotherFormat is refused with what to do, and before anything else of it is read.
func TestPlanOfAnotherFormat(t *testing.T) {
	p, err := planIncident(t, "h-misconfigured-member-add", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"1": "older etcd-medic", "3\nnewField: x": "newer etcd-medic",
		"none": "not a repair plan"} {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(file, bytes.Replace(b, []byte("schemaVersion: 2"), []byte("schemaVersion: "+version), 1),
			0o600); err != nil {
			t.Fatal(err)
		}
		_, err := plan.Load(file)
		if got := wantRefusal(t, err); !strings.Contains(got.Reason, want) || got.Hint == "" {
			t.Errorf("version %q: %q, hint %q; want %q", version, got.Reason, got.Hint, want)
		}
	}
}

// TestPlanSafetyIsNoSentence: what is not done for a member follows from values; other words in the plan change
// nothing.
func TestPlanSafetyIsNoSentence(t *testing.T) {
	m := plan.Member{Action: plan.Remove, NotStartable: "raft does not know it"}
	if m.Zombie() {
		t.Error("words alone make a zombie")
	}
	if m.Obstacle, m.NotStartable = plan.ObstacleBucketOnly, "other words"; !m.Zombie() {
		t.Error("other words hide a zombie")
	}
}

// TestPlanLostMajority: what the lost members may have committed is open upwards, and watchers need a higher revision.
func TestPlanLostMajority(t *testing.T) {
	p, err := planIncident(t, "a-auth-revision-replay", plan.Options{Gone: []string{"node1", "node2"}}, "node3")
	if err != nil {
		t.Fatal(err)
	}
	o := p.Lost.Open
	if o == nil || !slices.Equal(o.Voters, []string{"node1", "node2"}) || o.CommittedTo == 0 ||
		o.LogTo < o.CommittedTo || o.Revision != p.Best.Revision || o.BumpRevision < 1_000_000_000 {
		t.Fatalf("open end %+v", o)
	}
	all := strings.Join(p.Cautions, "\n")
	for _, want := range []string{"can have committed more than any source shows", "--bump-revision 1000000000 " +
		"--mark-compacted"} {
		if !strings.Contains(all, want) {
			t.Errorf("no caution says %q:\n%s", want, all)
		}
	}
	force := p.Way(plan.ForceNewCluster)
	if !force.Possible || force.Cost == nil || force.Cost.CopyBytes == 0 || force.Cost.Seconds == 0 {
		t.Errorf("the forced start has no cost: %+v", force.Cost)
	}
	if i := slices.IndexFunc(force.Steps, func(s plan.Step) bool { return s.Kind == plan.StepForceNew }); !slices.ContainsFunc(force.Steps[i].ByHand, func(c plan.Command) bool { return strings.Contains(c.Run, "--bump-revision") }) {
		t.Error("the forced start does not say how to raise the revision")
	}
	// With two of three every committed entry is in a log at hand.
	p, err = planIncident(t, "a-auth-revision-replay", plan.Options{Gone: []string{"node1"}}, "node2", "node3")
	if err != nil {
		t.Fatal(err)
	}
	if p.Lost.Open != nil {
		t.Errorf("a majority is at hand, and the plan says %+v", p.Lost.Open)
	}
}

// TestPlanUndecidedEntries: a forced start drops what the member does not know to be committed, so it is saved first.
func TestPlanUndecidedEntries(t *testing.T) {
	r := told(t, "m-healthy-3.5", "membership", "quorum-lost")
	without(r, 1)
	without(r, 1)
	w := *r.Members[0].WAL
	w.LastIndex += 4
	r.Members[0].WAL = &w
	p := planned(t, r, plan.Options{Gone: []string{"node2", "node4"}})
	if o := p.Lost.Open; o == nil || o.Undecided == nil || o.Undecided.To != w.LastIndex ||
		o.Undecided.To-o.Undecided.From != 3 {
		t.Fatalf("open end %+v", p.Lost.Open)
	}
	if !strings.Contains(strings.Join(p.Lost.Save, "\n"), "undecided-entries.jsonl") {
		t.Errorf("nothing saves them: %q", p.Lost.Save)
	}
}

// TestPlanCloneNeedsAMajority: clones keep raft's list, so those of the voters that run must be enough.
func TestPlanCloneNeedsAMajority(t *testing.T) {
	r := told(t, "m-healthy-3.5", "membership", "quorum-lost")
	dead := check.Finding{Check: "M05", Members: []string{"node1"}}
	for i := range r.Members {
		r.Members[i].Membership.Voters = append(slices.Clone(r.Members[i].Membership.Voters), 0xd1, 0xd2, 0xd3)
	}
	dead.Facts.About = []dumplog.ID{0xd1, 0xd2, 0xd3}
	r.Findings = append(r.Findings, dead)
	p := planned(t, r, plan.Options{})
	if w := p.Way(plan.Clone); w.Possible || !strings.Contains(w.Why, "only 3 of them would run") ||
		p.Mode != plan.ForceNewCluster {
		t.Errorf("mode %s, clone %v: %s", p.Mode, w.Possible, w.Why)
	}
}

// TestPlanCloneNeverOverwritesUnseen: a voter that is kept and brought no data dir may hold more.
func TestPlanCloneNeverOverwritesUnseen(t *testing.T) {
	r := told(t, "m-healthy-3.6", "membership", "quorum-lost")
	without(r, 2)
	p := planned(t, r, plan.Options{Replace: []string{"node2"}})
	if w := p.Way(plan.Clone); w.Possible || !strings.Contains(w.Why, "not among the sources") {
		t.Errorf("clone %v: %s", w.Possible, w.Why)
	}
}

// TestPlanMendsWhatIsAlone: one member with one bad page is mended from its own files; the plan was tried, and what it
// offers works.
func TestPlanMendsWhatIsAlone(t *testing.T) {
	p, err := planIncident(t, "f-bbolt-page-corruption", plan.Options{}, "node1")
	if err != nil {
		t.Fatal(err)
	}
	m := p.MendOf("node1")
	if p.Mode != plan.MendFiles || m == nil || !slices.Equal(m.Repairs, []string{plan.MendDB}) || len(m.With) > 0 ||
		p.Ways[0].Mode != plan.MendFiles {
		t.Fatalf("mode %s, mend %+v; want the database mended from its own files", p.Mode, m)
	}
	wantActions(t, p, map[string]plan.Action{"node1": plan.MendIt, "node2": plan.Keep, "node3": plan.Keep})
	if w := p.Way(plan.Restore); w == nil || w.Recommended {
		t.Errorf("the restore is not the last way: %+v", w)
	}
}

// TestPlanMendsNoWipedMember: the files of a wiped member are sound, and its vote is not.
func TestPlanMendsNoWipedMember(t *testing.T) {
	p, err := planIncident(t, "d-wiped-member", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Mends) > 0 || p.Way(plan.MendFiles) != nil {
		t.Errorf("mends %+v", p.Mends)
	}
}

// TestPlanEmptyDatabaseStarts: a server fills an empty database from a log that reaches back to the first entry. Next
// to a log that has lost its end, that member is the one that makes the majority.
func TestPlanEmptyDatabaseStarts(t *testing.T) {
	dirs := filepath.Join(t.TempDir(), "copies")
	for _, name := range []string{"node1", "node2", "node3"} {
		src := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "e3-wal-missing-last-segment"), name))
		if err := os.MkdirAll(dirs, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(src, filepath.Join(dirs, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dirs, "node3", "member", "snap", "db"), 0); err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(t.Context(), []evidence.Spec{{Where: dirs}}, nil, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := p.Member("node3"); !m.Startable || p.Mode != plan.Live || p.Cluster.Startable != 2 {
		t.Errorf("mode %s, %d can be started: %+v", p.Mode, p.Cluster.Startable, m)
	}
}
