package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// cutLog is a member whose database is empty and whose log has lost its end: a raft snapshot tells of more committed
// entries.
func cutLog(t *testing.T) evidence.Spec {
	t.Helper()
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "f2-empty-db"), "node3"))
	if err := os.Truncate(oneOf(t, filepath.Join(dir, "member", "wal", "*.wal")), 20000); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, dir)
	return evidence.Spec{Name: "node3", Where: dir}
}

// TestRebuildComesBeforeRestore: where nothing can be mended, what the log gives is more than an old backup. What no
// log holds is said.
func TestRebuildComesBeforeRestore(t *testing.T) {
	p, err := plan.New(t.Context(), []evidence.Spec{cutLog(t)}, try.In(""),
		plan.Options{Gone: []string{"node1", "node2"}})
	if err != nil {
		t.Fatal(err)
	}
	x := p.Rebuilt
	if p.Mode != plan.Rebuild || x == nil || x.Lost == nil || x.Lost.To != 243 || x.Lost.From != x.Index+1 {
		t.Fatalf("mode %s (%s), rebuilt %+v", p.Mode, p.Why, x)
	}
	wantActions(t, p, map[string]plan.Action{"node1": plan.RebuildIt, "node2": plan.RebuildIt, "node3": plan.RebuildIt})
	if w := p.Way(plan.Restore); w == nil || !w.Possible || w.Recommended {
		t.Errorf("the restore is no way any more: %+v", w)
	}
	if !strings.Contains(strings.Join(p.Cautions, "\n"), "no log among the sources holds all of them") {
		t.Errorf("what is lost is not said: %q", p.Cautions)
	}
	rebuildForAll(t, p)
}

// rebuildForAll rehearses a plan and gives three members the rebuilt database.
func rebuildForAll(t *testing.T, p *plan.Plan) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	out, err := Rehearse(t.Context(), file, Options{})
	mustReach(t, out, err)
	dir := filepath.Join(t.TempDir(), "out")
	wantServed(t, out)
	out, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.Rebuild, Out: dir})
	mustReach(t, out, err)
	wantServed(t, out)
	if len(out.Dirs) != 3 || len(out.Install) == 0 {
		t.Errorf("data dirs %v, commands %v", out.Dirs, out.Install)
	}
	wantWell(t, dir, 3)
}

// TestRebuildIsNoMoreThanABackup: a backup that holds as much is restored. The restore gives up what voters hold that
// were not given, so they are asked for.
func TestRebuildIsNoMoreThanABackup(t *testing.T) {
	specs := []evidence.Spec{cutLog(t), {Name: "backup", Where: filepath.Join(evidencetest.Incident(t, "f2-empty-db"),
		"node1", "member", "snap", "db")}}
	p, err := plan.New(t.Context(), specs, try.In(""), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Mode != plan.Restore || p.Rebuilt != nil {
		t.Errorf("mode %s, rebuilt %+v", p.Mode, p.Rebuilt)
	}
	if x := p.Missing; x == nil || !slices.Equal(x.Members, []string{"node1", "node2"}) ||
		!strings.HasPrefix(p.Cautions[0], "2 voters are not among the sources: a restore gives up what") {
		t.Errorf("missing %+v, cautions %q", x, p.Cautions)
	}
	initial := "--initial-cluster node1=http://"
	if s := p.Way(plan.Restore).Steps[0]; !slices.ContainsFunc(s.ByHand,
		func(c plan.Command) bool {
			return strings.Contains(c.Run, initial) && strings.Contains(c.Run, ",node3=")
		}) {
		t.Errorf("the new cluster lacks voters: %+v", s.ByHand)
	}
	p, err = plan.New(t.Context(), specs, try.In(""), plan.Options{Gone: []string{"node1", "node2"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Mode != plan.Restore || p.Missing != nil || len(p.Members) != 3 {
		t.Errorf("with the others given up: mode %s, missing %+v, members %+v", p.Mode, p.Missing, p.Members)
	}
	_, err = plan.New(t.Context(), specs, try.In(""), plan.Options{Gone: []string{"nobody"}})
	wantRefusal(t, err)
}

// TestRestoreFromRebuilt: where members cannot all get the rebuilt database, it is restored from, and the plan says
// why.
func TestRestoreFromRebuilt(t *testing.T) {
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "m-healthy-3.5-removed-member"))
	var specs []evidence.Spec
	for _, n := range []string{"node1", "node2"} {
		d := filepath.Join(dir, n)
		for file, size := range map[string]int64{"snap/db": 0, "wal/*.wal": 36000} {
			if err := os.Truncate(oneOf(t, filepath.Join(d, "member", file)), size); err != nil {
				t.Fatal(err)
			}
		}
		specs = append(specs, evidence.Spec{Name: n, Where: d})
	}
	evidencetest.Unchanged(t, dir)
	p, err := plan.New(t.Context(), specs, try.In(""),
		plan.Options{Gone: []string{"node3", "node4"}, Replace: []string{"node1"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Mode != plan.Restore || p.Rebuilt == nil || p.Rebuilt.Index != 313 || p.Missing != nil ||
		!strings.Contains(p.Cautions[0], "up to entry 313, which no backup reaches") ||
		!strings.Contains(p.Cautions[0], "(node1 joins as a new member") ||
		!strings.Contains(p.Cautions[1], "no log among the sources holds all of them") {
		t.Fatalf("mode %s, rebuilt %+v, cautions %q", p.Mode, p.Rebuilt, p.Cautions)
	}
	first := p.FirstCommands("plan.yaml")
	if len(first) != 2 || !strings.HasPrefix(first[0].String(), "etcd-medic rebuild --log COPY_OF_NODE1 --log ") ||
		first[1].String() != "etcd-medic restore rebuilt.db -o OUT" {
		t.Errorf("%q", first)
	}
}

// TestRebuildAsksForVoters: a rebuilt database is not given up for a restore because nothing was said of other voters.
// The plan asks for them, and can be rehearsed.
func TestRebuildAsksForVoters(t *testing.T) {
	p, err := plan.New(t.Context(), []evidence.Spec{cutLog(t)}, try.In(""), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := p.Missing
	if p.Mode != plan.RehearseOnly || p.Tries != plan.Rebuild || x == nil ||
		!slices.Equal(x.Members, []string{"node1", "node2"}) ||
		!strings.HasPrefix(p.Why, "the logs of node3 give a database up to entry ") {
		t.Fatalf("mode %s (%s), tries %q, missing %+v", p.Mode, p.Why, p.Tries, x)
	}
	if len(p.OtherWays()) > 0 {
		t.Errorf("ways of a plan that cannot be applied: %+v", p.OtherWays())
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	out, err := Rehearse(t.Context(), file, Options{})
	mustReach(t, out, err)
	if out.Way != plan.Rebuild {
		t.Errorf("way %s", out.Way)
	}
}

// TestRebuildContinuesTheBest: the kept member lacks entries that only the logs of members without a database hold, and
// without them it has no quorum. Its database, continued by their logs, holds everything.
func TestRebuildContinuesTheBest(t *testing.T) {
	specs := evidencetest.Copy(t, evidencetest.Incident(t, "t-purged-lagging"))
	var given []evidence.Spec
	for _, n := range []string{"m1", "m2", "m3"} {
		dir := filepath.Join(specs, n)
		if n != "m3" {
			if err := os.Truncate(filepath.Join(dir, "member", "snap", "db"), 0); err != nil {
				t.Fatal(err)
			}
		}
		given = append(given, evidence.Spec{Name: n, Where: dir})
	}
	evidencetest.Unchanged(t, specs)
	p, err := plan.New(t.Context(), given, try.In(""), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := p.Rebuilt
	if p.Mode != plan.Rebuild || x == nil || !x.Continues || x.Base != "m3" || x.Index != 213 || x.Lost != nil ||
		p.Best.Name != "m3" || p.Best.Revision != 204 {
		t.Fatalf("mode %s (%s), best %+v, rebuilt %+v", p.Mode, p.Why, p.Best, x)
	}
	if l := p.Lost; l.CommittedEntries+l.AfterEnd+l.Awaited+len(l.Save) > 0 {
		t.Errorf("lost %+v", l)
	}
	for _, w := range p.OtherWays() { // the loss above is not said of the database of m3 alone
		if w.Possible && (w.Mode != plan.Restore || !strings.Contains(w.Why, "everything after the backup is lost")) {
			t.Errorf("%s: possible %t, %s", w.Mode, w.Possible, w.Why)
		}
	}
	rebuildForAll(t, p)

	// Without the logs of the others there is nothing to continue it with.
	p, err = plan.New(t.Context(), given[2:], try.In(""), plan.Options{Gone: []string{"m1", "m2"}})
	if err == nil && p.Rebuilt != nil {
		t.Errorf("rebuilt from its own log: %+v", p.Rebuilt)
	}
}
