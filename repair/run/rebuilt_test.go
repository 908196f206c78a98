package run

import (
	"os"
	"path/filepath"
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
	if !strings.Contains(strings.Join(p.Cautions, "\n"), "no log among the sources holds them") {
		t.Errorf("what is lost is not said: %q", p.Cautions)
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	out, err := Rehearse(t.Context(), file, Options{})
	mustReach(t, out, err)
	dir := filepath.Join(t.TempDir(), "out")
	out, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.Rebuild, Out: dir})
	mustReach(t, out, err)
	wantWell(t, dir, 3)
}

// TestRebuildIsNoMoreThanABackup: a backup that holds as much is restored, and voters of which nothing was said are not
// overwritten.
func TestRebuildIsNoMoreThanABackup(t *testing.T) {
	newer := evidence.Spec{Name: "backup", Where: filepath.Join(evidencetest.Incident(t, "f2-empty-db"), "node1",
		"member", "snap", "db")}
	for name, specs := range map[string][]evidence.Spec{"a newer database": {cutLog(t), newer},
		"nothing said of the others": {cutLog(t)}} {
		p, err := plan.New(t.Context(), specs, try.In(""), plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Mode == plan.Rebuild || p.Rebuilt != nil {
			t.Errorf("%s: mode %s, rebuilt %+v", name, p.Mode, p.Rebuilt)
		}
	}
}
