package backup_test

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// meta sets a number in bucket meta.
func meta(row string, n uint64) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte(row), binary.BigEndian.AppendUint64(nil, n))
	}
}

// TestAgainstLog: the log of a data dir shows that a backup does not hold what its consistent index promises, though
// all records that both have are equal.
func TestAgainstLog(t *testing.T) {
	dir := t.TempDir()
	s := clustertest.Synth{Members: 1, Entries: 60, Keys: 50, Value: 20}
	s.Write(t, dir)
	members, _ := filepath.Glob(filepath.Join(dir, "*", "member", "snap", "db"))
	if len(members) != 1 {
		t.Fatal(members)
	}
	db := members[0]
	source := filepath.Dir(filepath.Dir(filepath.Dir(db)))
	for name, c := range map[string]struct {
		change func(*bbolt.Tx) error
		want   string
	}{
		"sound": {func(*bbolt.Tx) error { return nil }, ""},
		"last write lost": {func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("key"))
			k, _ := b.Cursor().Last()
			return b.Delete(k)
		}, "its database disagrees with the log"},
		"lower index":  {meta("consistent_index", 40), "the database holds the effects of entries 41.."},
		"another term": {meta("term", 9), "the database says term 9"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := against(t, altered(t, db, c.change), source)
			titles := ""
			for _, f := range r.Findings {
				if f.Kind == check.KindBackupAgainstLog {
					titles += f.Title + "\n"
				}
			}
			if (titles != "") != (c.want != "") || !strings.Contains(titles, c.want) ||
				(outcome(r, "B08") == check.Violated) != (c.want != "" && name != "lower index") {
				t.Errorf("B08 %s: %s%+v", outcome(r, "B08"), titles, r.Verdict)
			}
		})
	}
}
