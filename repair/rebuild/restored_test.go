package rebuild_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// founded is the log of a cluster of one member with writes k0 to k<n-1>, restored from a backup or not.
func founded(t *testing.T, restored bool, prefix string, n int) string {
	t.Helper()
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprint(prefix, i))
	}
	return foundedWith(t, restored, keys...)
}

// foundedWith is the same with these keys.
func foundedWith(t *testing.T, restored bool, keys ...string) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "n1", 1, 7)
	h.Found(restored, 1)
	h.Request(2, 2, nil)
	for i, key := range keys {
		h.Put(2, uint64(3+i), clustertest.RequestID(1, 1, uint64(i)), key, "v", false)
	}
	end := uint64(2 + len(keys))
	h.State(2, 1, end)
	dir := h.Close(end, 2) // nothing is made in the background any more
	if err := os.Remove(filepath.Join(dir, "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "member", "wal")
}

// TestRestoredClusterDidNotBeginEmpty: the log of a restored cluster reaches back to entry 1, but what the backup held
// is in no entry. So nothing is built from the log alone, nor from a database that may be older than the restore.
func TestRestoredClusterDidNotBeginEmpty(t *testing.T) {
	last := rebuild.Target{Last: true}
	for _, restored := range []bool{false, true} {
		wal := founded(t, restored, "k", 5)
		r, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: wal}}, To: last, Version: release.Of("3.5.0"),
			Out: filepath.Join(t.TempDir(), "out.db")})
		if !restored && (err != nil || r.Keys != 5) {
			t.Errorf("bootstrapped: %+v %v", r, err)
		}
		if restored && (err == nil || !strings.Contains(err.Error(), "begins with a restore")) {
			t.Errorf("restored: %+v %v", r, err)
		}
		dir := filepath.Dir(filepath.Dir(wal))
		up, err := rebuild.CatchUp(ctx(), rebuild.CatchUpOptions{Source: evidence.Spec{Where: dir}})
		if err != nil {
			t.Fatal(err)
		}
		if up.FromStart {
			t.Errorf("a data dir without a database, restored %v: %+v", restored, up)
		}
	}
	base := filepath.Join(t.TempDir(), "base.db")
	if _, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: founded(t, false, "old", 3)}}, To: last,
		Version: release.Of("3.5.0"), Out: base}); err != nil {
		t.Fatal(err)
	}
	logs := []evidence.Spec{{Where: founded(t, true, "new", 6)}}
	refused(t, "base from before the restore", rebuild.Options{Base: evidence.Spec{Where: base}, Logs: logs, To: last},
		"was taken after it")
	// A key that is always written with one value is in both histories: it shows nothing at another place.
	always := []evidence.Spec{{Where: foundedWith(t, true, "old0", "new1", "new2")}}
	refused(t, "base that has one of the log's writes by chance",
		rebuild.Options{Base: evidence.Spec{Where: base}, Logs: always, To: last},
		"of the last 3 keys that the log writes up to the base's index 5, the base has 1")
	same := []evidence.Spec{{Where: founded(t, true, "old", 6)}}
	r, err := run(t, rebuild.Options{Base: evidence.Spec{Where: base}, Logs: same, To: last,
		Out: filepath.Join(t.TempDir(), "out.db")})
	if err != nil || r.Keys != 6 || !strings.Contains(strings.Join(r.Notes, "\n"), "only 3 keys show that the base") {
		t.Errorf("a base that has the log's writes: %+v %v", r, err)
	}
}

// TestCatchUpOfADatabaseNeverWritten: a server that was killed before its first commit leaves empty buckets and a log
// from entry 1, which is executed. Without the first entries, or with rows, the database is not such a one.
func TestCatchUpOfADatabaseNeverWritten(t *testing.T) {
	dirs := lagging(t, 3, "3.5.0")
	never := evidencetest.Copy(t, dirs[0])
	path := filepath.Join(never, "member", "snap", "db")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	editDB(t, path, func(tx *bbolt.Tx) error {
		for _, b := range []string{"key", "meta", "lease", "alarm", "auth", "authUsers", "authRoles", "members",
			"members_removed", "cluster"} {
			if _, err := tx.CreateBucket([]byte(b)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte("auth")).Put([]byte("authRevision"), []byte{0, 0, 0, 0, 0, 0, 0, 1})
	})
	up, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: never}})
	if !up.Whole() || keys != 40 || up.Executed < 40 {
		t.Errorf("%d keys, %+v", keys, up)
	}
	editDB(t, path, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("alarm")).Put([]byte{8, 1, 16, 1}, nil)
	})
	up, keys = caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: never}})
	if up.Whole() || keys != 0 || up.Missing < 40 {
		t.Errorf("with a row, of which the index is unknown: %d keys, %+v", keys, up)
	}
}

func editDB(t *testing.T, path string, edit func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(edit); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
