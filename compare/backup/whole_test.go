package backup_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestVerifyDoesAll: everything that is asked for is done in one run: the comparison, the age and the drill, which sees
// the layers and the comparison.
func TestVerifyDoesAll(t *testing.T) {
	path, now := good(t), time.Now()
	drilled := &backup.Drill{OK: true}
	o := backup.Options{Against: []evidence.Spec{{Name: "same", Where: path}}}
	o.Fresh = backup.Freshness{MaxAge: time.Hour, Modified: now, Now: now, Behind: true}
	o.Drill = func(_ context.Context, m *evidence.Member, r *compare.Report) (*backup.Drill, error) {
		if m.DB == nil || len(r.Backup.Layers) == 0 || r.Backup.Against == nil || r.Backup.Age == nil {
			t.Errorf("the drill is made of %+v", r.Backup)
		}
		return drilled, nil
	}
	r, err := backup.Verify(t.Context(), evidence.Spec{Where: path}, o)
	must(t, err)
	if outcome(r, "B08") != check.Holds || outcome(r, "B11") != check.Holds || r.Backup.Drill != drilled ||
		r.Verdict.Class != "backup-good" || !strings.HasPrefix(r.Next[len(r.Next)-1].Text, "nothing to do") {
		t.Errorf("%+v, next %+v", r.Backup, r.Next)
	}
	bad := errors.New("no room")
	o.Drill = func(context.Context, *evidence.Member, *compare.Report) (*backup.Drill, error) { return nil, bad }
	if _, err := backup.Verify(t.Context(), evidence.Spec{Where: path}, o); !errors.Is(err, bad) {
		t.Errorf("a drill that fails: %v", err)
	}
}

// TestSupersededRecordLost: a backup that lacks only a record that was overwritten later is damaged too; a backup that
// has one more than the source is of another history.
func TestSupersededRecordLost(t *testing.T) {
	dir := t.TempDir()
	s := clustertest.Synth{Members: 1, Entries: 60, Keys: 10, Value: 20}
	whole := filepath.Join(dir, "whole.db")
	s.WriteDB(t, whole)
	lacking := altered(t, whole, lost(20))
	_, a := against(t, lacking, whole)
	c := a.Compared[0]
	if c.SameHistory != check.Violated || !c.BackupLacks || c.Lost != 0 || c.First.Revision.Main != 20 ||
		c.First.InBackup != "no such record" || !strings.HasPrefix(c.First.InSource, "put of") {
		t.Errorf("%+v, first %+v", c, c.First)
	}
	_, a = against(t, whole, lacking)
	c = a.Compared[0]
	if c.SameHistory != check.Violated || c.BackupLacks || c.First.Revision.Main != 20 ||
		c.First.InSource != "no such record" {
		t.Errorf("the other way round: %+v, first %+v", c, c.First)
	}
}

// TestRowsOfChanges: the listed keys are in order, whatever the order in which they were written.
func TestRowsOfChanges(t *testing.T) {
	node1 := filepath.Join(evidencetest.Incident(t, "k-lagging-node"), "node1")
	_, a := against(t, nodeDB(t, "k-lagging-node", "node3"), node1)
	rows := a.Compared[0].Rows
	if len(rows) != 10 || !slices.IsSortedFunc(rows, func(a, b backup.ChangeRow) int {
		return strings.Compare(string(a.Key), string(b.Key))
	}) {
		t.Errorf("%+v", rows)
	}
	// Key number 3 is written at revision 50 and lost, or altered, below the compact revision of both.
	s := clustertest.Synth{Members: 1, Entries: 60, Keys: 50, Value: 20}
	whole := filepath.Join(t.TempDir(), "whole.db")
	s.WriteDB(t, whole)
	_, a = against(t, altered(t, whole, lost(50)), whole)
	if c := a.Compared[0]; c.Lost != 1 || c.Missing != 1 || len(c.Rows) != 1 || c.Rows[0].Change != "missing" ||
		c.More != 0 {
		t.Errorf("%+v", c)
	}
}
