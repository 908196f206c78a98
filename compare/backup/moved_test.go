package backup_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestRecordAtAnotherPlace: a record whose sub revision was altered has another revision than the source's record,
// below the compact revisions of both as well, although key, value and mod revision are the same.
func TestRecordAtAnotherPlace(t *testing.T) {
	dir := t.TempDir()
	s := clustertest.Synth{Members: 1, Entries: 60, Keys: 50, Value: 20}
	old, now := filepath.Join(dir, "old.db"), filepath.Join(dir, "now.db")
	s.WriteDB(t, old)
	s.Entries = 80
	s.WriteDB(t, now)
	compactTo(t, old, 58, 50)
	compactTo(t, now, 58, 50)
	moved := func(tx *bbolt.Tx) error {
		keys := tx.Bucket([]byte("key"))
		value := bytes.Clone(keys.Get(rev(40)))
		to := rev(40)
		to[len(to)-1] = 1
		if err := keys.Delete(rev(40)); err != nil {
			return err
		}
		return keys.Put(to, value)
	}
	for name, c := range map[string]struct{ backup, source, first string }{
		"in the backup": {altered(t, old, moved), now, "40.1"},
		"in the source": {old, altered(t, now, moved), "40.0"},
		"in both":       {altered(t, old, moved), altered(t, now, moved), ""},
		"in neither":    {old, evidencetest.Copy(t, now), ""},
	} {
		r, a := against(t, c.backup, c.source)
		got, want := a.Compared[0], check.Holds
		if c.first != "" {
			want = check.Violated
		}
		if outcome(r, "B08") != want || got.SameHistory != want || got.BackupLacks {
			t.Errorf("%s: B08 %s, %+v", name, outcome(r, "B08"), got)
		}
		if c.first != "" && (got.First.Revision.Main != 40 || got.First.InBackup[:4] != c.first) {
			t.Errorf("%s: %+v", name, got.First)
		}
	}
}
