package plan_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// madeUpTo returns a rebuild whose database holds the cluster's entries up to index.
func madeUpTo(t *testing.T, index uint64) func(*plan.RebuildJob) (*plan.RebuiltFile, error) {
	t.Helper()
	db := dbOf(memberDir(t, 0, history{last: index}))
	return func(*plan.RebuildJob) (*plan.RebuiltFile, error) {
		return &plan.RebuiltFile{Path: db, Index: index, Term: 2, Keys: int64(index) - 4}, nil
	}
}

// backupOf is a backup of a member's database.
func backupOf(t *testing.T, name, dir string) evidence.Spec {
	t.Helper()
	b, err := os.ReadFile(dbOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name+".db")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return evidence.Spec{Name: name, Where: file}
}

func newPlan(t *testing.T, specs []evidence.Spec, x *trials, o plan.Options) *plan.Plan {
	t.Helper()
	p, err := plan.New(t.Context(), specs, x.scratch, o)
	if err != nil {
		t.Fatal(err)
	}
	wantWholeSteps(t, p)
	return p
}

// TestRebuiltForAll: where no database is usable and none can be mended, all members get the one that logs give.
func TestRebuiltForAll(t *testing.T) {
	specs := cluster(t, 20, 20, 18)
	blank(t, specs...)
	x := &trials{rebuild: madeUpTo(t, 20)}
	p := newPlan(t, specs, x, plan.Options{})
	const why = "no data dir is usable as it is, and their logs give all that is proven committed"
	if p.Mode != plan.Rebuild || p.Why != why {
		t.Errorf("mode %s: %s", p.Mode, p.Why)
	}
	wantActions(t, p, map[string]plan.Action{"node1": plan.RebuildIt, "node2": plan.RebuildIt, "node3": plan.RebuildIt})
	got := p.Rebuilt
	if got == nil || got.Base != "" || got.Continues || !slices.Equal(got.Logs, []string{"node1", "node2", "node3"}) ||
		got.Index != 20 || got.Term != 2 || got.Keys != 16 || got.Bytes == 0 || got.Lost != nil ||
		got.Promise.AppliedIndex != 20 || got.Promise.LastIndex != 20 || got.Promise.Revision != 17 {
		t.Fatalf("rebuilt %+v", got)
	}
	if p.Best.AppliedIndex != 20 || p.Best.Revision != 17 || p.Lost.CommittedEntries != 0 || x.closed != 2 ||
		p.Best.Why != "no data dir is usable; the logs of node1, node2, node3 give a database up to entry 20" {
		t.Errorf("best %+v, lost %+v, %d places removed", p.Best, p.Lost, x.closed)
	}
	w := p.Way(plan.Rebuild)
	if !w.Recommended || w.Why != "all members are stopped for it; the logs of node1, node2, node3 give a database up "+
		"to entry 20, revision 17, as was tried; member and cluster IDs stay" {
		t.Errorf("the way says %q", w.Why)
	}
	if s := w.Steps[0]; s.Kind != plan.StepRebuild || !strings.HasSuffix(s.Effect, "16 keys") ||
		s.ByHand[0].Run != "etcd-medic rebuild --log COPY_OF_NODE1 --log COPY_OF_NODE2 --log COPY_OF_NODE3 --to last "+
			"-o rebuilt.db" {
		t.Errorf("step %+v", s)
	}
	if r := p.Way(plan.Restore); r == nil || r.Recommended || !r.Possible {
		t.Errorf("the restore is no way any more: %+v", r)
	}
	if p.Tried() != plan.Rebuild {
		t.Errorf("a rehearsal tries %q", p.Tried())
	}
}

// TestRebuiltLosesEntries: committed entries that no log holds are said to be lost, also those of which only the
// HardState of a log that has lost its end shows that they were committed.
func TestRebuiltLosesEntries(t *testing.T) {
	for index, want := range map[uint64]string{16: "entries 17 to 19", 18: "entry 19"} {
		specs := cluster(t, 18, 18, 18)
		specs[1].Where = memberDir(t, 1, history{last: 18, commit: 19})
		blank(t, specs...)
		p := newPlan(t, specs, &trials{rebuild: madeUpTo(t, index)}, plan.Options{})
		if p.Mode != plan.Rebuild || p.Rebuilt.Lost == nil || p.Rebuilt.Lost.String() != want {
			t.Fatalf("mode %s (%s), rebuilt %+v", p.Mode, p.Why, p.Rebuilt)
		}
		if !hasCaution(p, want+" were committed, and no log among the sources holds all of them: they are lost") ||
			!strings.Contains(p.Why, "their logs give more than a backup") {
			t.Errorf("%s, cautions %q", p.Why, p.Cautions)
		}
	}
}

// TestRebuiltFrom: the databases of all backups are tried, and the logs alone. What holds most counts, unless a backup
// holds as much.
func TestRebuiltFrom(t *testing.T) {
	specs := cluster(t, 20, 20, 20)
	older, newer := memberDir(t, 0, history{last: 12}), memberDir(t, 0, history{last: 16})
	specs = append(specs, backupOf(t, "older", older), backupOf(t, "newer", newer))
	damaged := evidencetest.Copy(t, specs[0].Where)
	casetest.EditDB(t, damaged, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("key")).Put([]byte("no"), []byte("key"))
	})
	blank(t, specs[:3]...)
	good := map[uint64]func(*plan.RebuildJob) (*plan.RebuiltFile, error){}
	for _, n := range []uint64{14, 16, 18, 20} {
		good[n] = madeUpTo(t, n)
	}
	for name, tc := range map[string]struct {
		// gives are the last entries by base, 0 for a failure.
		gives map[string]uint64
		mode  plan.Mode
		base  string
		index uint64
	}{
		"from the newest backup":        {map[string]uint64{"newer": 20}, plan.Rebuild, "newer", 20},
		"from an older one":             {map[string]uint64{"newer": 18, "older": 20}, plan.Rebuild, "older", 20},
		"from logs alone":               {map[string]uint64{"": 18}, plan.Rebuild, "", 18},
		"equal ones":                    {map[string]uint64{"newer": 20, "older": 20, "": 20}, plan.Rebuild, "newer", 20},
		"no more than a backup":         {map[string]uint64{"older": 16}, plan.Restore, "", 0},
		"less than a backup":            {map[string]uint64{"": 14}, plan.Restore, "", 0},
		"none":                          {nil, plan.Restore, "", 0},
		"a result that is damaged":      {map[string]uint64{"newer": 1}, plan.Restore, "", 0},
		"damaged, and one that is less": {map[string]uint64{"newer": 1, "older": 18}, plan.Rebuild, "older", 18},
	} {
		t.Run(name, func(t *testing.T) {
			x := &trials{rebuild: func(j *plan.RebuildJob) (*plan.RebuiltFile, error) {
				switch n := tc.gives[j.Base.Name]; n {
				case 0:
					return nil, errors.New("the logs do not continue it")
				case 1:
					return &plan.RebuiltFile{Path: dbOf(damaged), Index: 20, Term: 2}, nil
				default:
					return good[n](j)
				}
			}}
			p := newPlan(t, specs, x, plan.Options{})
			if !slices.Equal(x.bases, []string{"newer", "older", ""}) {
				t.Errorf("tried from %q", x.bases)
			}
			if p.Mode != tc.mode || (p.Rebuilt != nil) != (tc.mode == plan.Rebuild) {
				t.Fatalf("mode %s (%s), rebuilt %+v", p.Mode, p.Why, p.Rebuilt)
			}
			if y := p.Rebuilt; y != nil && (y.Base != tc.base || y.Index != tc.index) {
				t.Errorf("from %q up to %d, want %q, %d", y.Base, y.Index, tc.base, tc.index)
			}
			const logs = " and the logs of node1, node2, node3"
			if tc.base != "" && !strings.Contains(p.Way(plan.Rebuild).Why, tc.base+logs) {
				t.Errorf("the way says %q", p.Way(plan.Rebuild).Why)
			}
			if tc.mode == plan.Restore {
				wantRestoreFrom(t, p, specs[4])
			}
		})
	}
}

// wantRestoreFrom checks that every member is restored from a backup.
func wantRestoreFrom(t *testing.T, p *plan.Plan, backup evidence.Spec) {
	t.Helper()
	wantActions(t, p, map[string]plan.Action{"node1": plan.Replace, "node2": plan.Replace, "node3": plan.Replace})
	for _, m := range p.Members {
		if m.Why != "restored from "+backup.Name || len(m.PeerURLs) != 1 {
			t.Errorf("%+v, want it restored from %s", m, backup.Name)
		}
	}
	s := p.Way(plan.Restore).Steps[0]
	if s.Title != "restore every member from "+backup.Name ||
		s.ByHand[1].Run != "etcd-medic restore "+backup.Where+" -o OUT --accept-unproven-content" {
		t.Errorf("step %q, by hand %q", s.Title, s.ByHand[1].Run)
	}
	initial := "--initial-cluster node1=" + p.Members[0].PeerURLs[0] + ",node2=" + p.Members[1].PeerURLs[0] +
		",node3=" + p.Members[2].PeerURLs[0]
	on := func(c plan.Command) bool { return c.On == "node2" }
	if i := slices.IndexFunc(s.ByHand, on); !strings.Contains(s.ByHand[i].Run, initial) ||
		!strings.Contains(s.ByHand[i].Run, "--name node2 ") {
		t.Errorf("on node2 %q, want %q", s.ByHand[i].Run, initial)
	}
	if p.Tried() != "" || !hasCaution(p, "a restore begins a new cluster: member and cluster IDs change") ||
		!hasCaution(p, "--bump-revision 1000000000 --mark-compacted") {
		t.Errorf("tries %q, cautions %q", p.Tried(), p.Cautions)
	}
}

// TestRebuiltNeedsWord: a rebuilt database would overwrite the data dirs of voters of which nothing was said, so they
// are asked for, whether the plan is to rebuild or to restore.
func TestRebuiltNeedsWord(t *testing.T) {
	specs := cluster(t, 20, 20, 20)[:1]
	blank(t, specs...)
	x := &trials{rebuild: madeUpTo(t, 20)}
	p := newPlan(t, specs, x, plan.Options{})
	if p.Mode != plan.RehearseOnly || p.Tries != plan.Rebuild || p.Missing == nil ||
		!slices.Equal(p.Missing.Members, []string{"node2", "node3"}) ||
		!strings.HasPrefix(p.Why, "the logs of node1 give a database up to entry 20 for all members, and nothing is known "+
			"about node2, node3: until their data dirs are given") {
		t.Fatalf("mode %s, tries %q, missing %+v: %s", p.Mode, p.Tries, p.Missing, p.Why)
	}
	if got := p.Missing.Text(); got != "the data dirs of node2, node3, each server stopped; or --lost for those that "+
		"are permanently lost" {
		t.Errorf("missing: %s", got)
	}
	p = newPlan(t, specs, x, plan.Options{Gone: []string{"node2", "node3"}})
	if p.Mode != plan.Rebuild || p.Missing != nil {
		t.Errorf("with the others given up: mode %s (%s), missing %+v", p.Mode, p.Why, p.Missing)
	}
	// No backup tells the names of the others.
	p = newPlan(t, specs, &trials{}, plan.Options{})
	if p.Mode != plan.Restore || p.Missing == nil || !slices.Equal(p.Missing.Members, []string{"a2", "a3"}) ||
		!hasCaution(p, "2 voters are not among the sources: a restore gives up what their data dirs hold") {
		t.Errorf("mode %s (%s), missing %+v, cautions %q", p.Mode, p.Why, p.Missing, p.Cautions)
	}
	p = newPlan(t, specs, &trials{}, plan.Options{Gone: []string{"a2"}})
	if p.Missing == nil || p.Missing.Text() != "the data dir of a3, its server stopped; or --lost if it is "+
		"permanently lost" || p.Member("a2").Why != "its data dir is lost: restored from BACKUP" ||
		p.Member("a3").Why != "its data dir is not among the sources: restored from BACKUP" {
		t.Errorf("missing %+v, members %+v", p.Missing, p.Members)
	}
	if x := p.Missing; !strings.HasSuffix(x.Give.Run, " --lost a2 a3=DATA_DIR_OF_A3 -o NEW_PLAN.yaml") ||
		!strings.HasSuffix(x.GiveUp.Run, " --lost a2 --lost a3 -o NEW_PLAN.yaml") {
		t.Errorf("%q, %q", x.Give.Run, x.GiveUp.Run)
	}
}

// TestRebuiltThatCannotBeGiven: the rebuilt database is not for a member that comes back under a new ID. It is restored
// from, since no backup holds as much.
func TestRebuiltThatCannotBeGiven(t *testing.T) {
	specs := cluster(t, 20, 20, 20)
	h := clustertest.NewHand(t, t.TempDir(), "node4", 0xa4, 0xc1) // no member of the configuration
	h.Found(false, voters...)
	h.Request(2, 4, nil)
	h.State(2, 0xa1, 4)
	h.Member(0xa4, false, true)
	specs = append(specs, evidence.Spec{Name: "node4", Where: h.Close(4, 2)},
		backupOf(t, "backup", memberDir(t, 0, history{last: 12})))
	blank(t, specs[:4]...)
	p := newPlan(t, specs, &trials{rebuild: madeUpTo(t, 18)}, plan.Options{Replace: []string{"node4"}})
	if p.Mode != plan.Restore || p.Rebuilt == nil || p.Rebuilt.Base != "backup" || p.Best.Name != "" {
		t.Fatalf("mode %s (%s), rebuilt %+v, best %+v", p.Mode, p.Why, p.Rebuilt, p.Best)
	}
	for _, says := range []string{"backup and the logs of node1, node2, node3, node4 give a database up to entry 18, " +
		"which no backup reaches. It cannot be put in the data dirs of all members (node4 joins as a new member",
		"entries 19 to 20 were committed, and no log among the sources holds all of them"} {
		if !hasCaution(p, says) {
			t.Errorf("no caution says %q: %q", says, p.Cautions)
		}
	}
	s := p.Way(plan.Restore).Steps[0]
	if s.Title != "restore every member from rebuilt.db" || s.ByHand[0].Run != "etcd-medic rebuild --base "+
		"COPY_OF_BACKUP --log COPY_OF_NODE1 --log COPY_OF_NODE2 --log COPY_OF_NODE3 --log COPY_OF_NODE4 --to last -o "+
		"rebuilt.db" || s.ByHand[2].Run != "etcd-medic restore rebuilt.db -o OUT" {
		t.Errorf("step %q, by hand %+v", s.Title, s.ByHand[:3])
	}
	if got := p.FirstCommands("plan.yaml"); got[0].String() != s.ByHand[0].Run || len(got) != 2 {
		t.Errorf("first are %q", got)
	}
}

// TestRebuiltContinues: the best member's database lacks committed entries that only logs of members hold on whose data
// dirs no server starts. A database of both gives up less than a forced start.
func TestRebuiltContinues(t *testing.T) {
	for name, tc := range map[string]struct {
		index uint64
		mode  plan.Mode
		lost  int
		why   string
	}{
		"all of them": {20, plan.Rebuild, 0, "no data dir can be started that holds all that is proven committed; the " +
			"database of node3 and the logs of node1, node2, node3 give it, up to entry 20"},
		"some of them": {16, plan.Rebuild, 4, "the database of node3 and the logs of node1, node2, node3 give more than " +
			"any data dir that can be started: everything up to entry 16"},
		"none of them": {12, plan.ForceNewCluster, 8, "only 1 of 3 voters can be started, 2 are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			specs := lagging(t)
			blank(t, specs[:2]...)
			x := &trials{rebuild: madeUpTo(t, tc.index)}
			p := newPlan(t, specs, x, plan.Options{})
			if p.Mode != tc.mode || !strings.HasPrefix(p.Why, tc.why) || p.Lost.CommittedEntries != tc.lost ||
				p.Lost.AfterEnd != tc.lost || p.Lost.Awaited != 0 {
				t.Errorf("mode %s (%s), lost %+v; want %s (%s), %d", p.Mode, p.Why, p.Lost, tc.mode, tc.why, tc.lost)
			}
			if !slices.Equal(x.bases, []string{"node3"}) || p.Best.Name != "node3" {
				t.Errorf("keeps %s, tried from %q", p.Best.Name, x.bases)
			}
			if tc.mode != plan.Rebuild {
				if p.Rebuilt != nil {
					t.Errorf("rebuilt %+v", p.Rebuilt)
				}
				return
			}
			if !p.Rebuilt.Continues || p.Rebuilt.Base != "node3" || p.Best.AppliedIndex != tc.index {
				t.Errorf("rebuilt %+v, best %+v", p.Rebuilt, p.Best)
			}
			if slices.ContainsFunc(p.Ways, func(w plan.Way) bool { return w.Mode == plan.Restore }) {
				t.Error("a restore is offered, which gives up more than the rebuilt database")
			}
			for _, m := range []plan.Mode{plan.Clone, plan.ForceNewCluster, plan.Reseed} {
				if w := p.Way(m); w.Possible || !strings.Contains(w.Why, "node3 would lack the committed entries that only "+
					"logs hold") {
					t.Errorf("%s is possible: %v, %s", m, w.Possible, w.Why)
				}
			}
		})
	}
}

// TestRebuiltForALaggingMember: the servers of members with a wrong record would send their database to the member that
// is kept and lags below their raft snapshot. Their logs have what it lacks.
func TestRebuiltForALaggingMember(t *testing.T) {
	for snapshot, mode := range map[uint64]plan.Mode{0: plan.Live, 16: plan.Rebuild} {
		specs := laggingBelow(t, snapshot)
		for _, s := range specs[:2] {
			casetest.EditDBOnce(t, s.Where, casetest.AlterRecords(3))
		}
		x := &trials{rebuild: madeUpTo(t, 20)}
		p := newPlan(t, specs, x, plan.Options{Best: "node3"})
		if p.Mode != mode || p.Lost.CommittedEntries != 0 || (p.Lost.Awaited > 0) != (mode == plan.Live) ||
			slices.Equal(x.bases, []string{"node3"}) != (mode == plan.Rebuild) {
			t.Errorf("snapshot at %d: mode %s (%s), lost %+v, tried from %q", snapshot, p.Mode, p.Why, p.Lost, x.bases)
		}
	}
}

// TestMendedGoFurthest: where no data dir is usable as it is, the mended one with the most entries is kept.
func TestMendedGoFurthest(t *testing.T) {
	specs := cluster(t, 18, 20, 18)
	made := map[string]string{}
	for _, s := range specs {
		made[s.Name] = evidencetest.Copy(t, s.Where)
	}
	blank(t, specs...)
	x := &trials{mend: func(j *plan.MendJob) (string, error) { return made[j.Source.Name], nil }}
	p := newPlan(t, specs, x, plan.Options{})
	if p.Mode != plan.MendFiles || p.Best.Name != "node2" || p.Best.AppliedIndex != 20 ||
		p.Best.Why != "no data dir is usable as it is; mended, it has come furthest" || p.Rebuilt != nil ||
		!strings.HasPrefix(p.Why, "only 0 of 3 voters can be started, 2 are needed, and damaged files can be mended without") {
		t.Fatalf("mode %s (%s), best %+v", p.Mode, p.Why, p.Best)
	}
	wantActions(t, p, map[string]plan.Action{"node1": plan.MendIt, "node2": plan.MendIt, "node3": plan.MendIt})
	if len(p.BesideMended()) > 0 {
		t.Errorf("%+v run with the mended ones", p.BesideMended())
	}
	if w := p.Way(plan.Clone); w.Possible || !strings.Contains(w.Why, "no data dir among the sources is sound") {
		t.Errorf("clone %v: %s", w.Possible, w.Why)
	}
	// One that can be mended is no majority: what the logs give is for all.
	x.mend = func(j *plan.MendJob) (string, error) {
		if j.Source.Name != "node1" {
			return "", errors.New("nothing mends it")
		}
		return made["node1"], nil
	}
	x.rebuild = madeUpTo(t, 20)
	p = newPlan(t, specs, x, plan.Options{})
	if p.Mode == plan.Restore {
		t.Errorf("mode %s: %s", p.Mode, p.Why)
	}
}

// TestLossesOfOneCluster: of sources of several clusters one is kept with --best. What that loses shows in the sources
// of its own cluster, and only their logs continue its database, though another cluster has more of them.
func TestLossesOfOneCluster(t *testing.T) {
	specs := lagging(t)
	blank(t, specs[:2]...)
	ids := []uint64{0xb1, 0xb2, 0xb3, 0xb4}
	for i, id := range ids {
		h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("other%d", i+1), id, 0xc2)
		h.Found(false, ids...)
		h.Put(2, 5, clustertest.RequestID(0xb1, 1763000000000, 5), "k", "v", true)
		h.State(2, 0xb1, 5)
		for _, m := range ids {
			h.Member(m, false, true)
		}
		specs = append(specs, evidence.Spec{Name: fmt.Sprintf("other%d", i+1), Where: h.Close(5, 2)})
	}
	var logs []string
	made := madeUpTo(t, 20)
	x := &trials{rebuild: func(j *plan.RebuildJob) (*plan.RebuiltFile, error) {
		for _, m := range j.Logs {
			logs = append(logs, m.Label())
		}
		return made(j)
	}}
	p := newPlan(t, specs, x, plan.Options{Best: "node3"})
	if p.Best.Name != "node3" || p.Lost.CommittedEntries != 8 || p.Lost.AfterEnd != 8 ||
		!slices.Equal(p.Lost.Others, []string{"other1", "other2", "other3", "other4"}) {
		t.Errorf("keeps %s, lost %+v", p.Best.Name, p.Lost)
	}
	if !slices.Equal(logs, []string{"node1", "node2", "node3"}) {
		t.Errorf("rebuilt with the logs of %q", logs)
	}
	// Content does not decide between clusters.
	var refused *refusal.Error
	if _, err := plan.New(t.Context(), specs, x.scratch, plan.Options{}); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "belong to different clusters") {
		t.Errorf("without --best: %v", err)
	}
}
