package cause_test

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// edited builds a sound cluster of three with a snapshot and changes files of node2.
func edited(edit func(t *testing.T, member string)) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		for _, h := range s.hands {
			h.Snapshot(s.term, s.index, a1, a2, a3)
		}
		s.puts(120)
		s.done()
		edit(t, filepath.Join(root, "node2", "member"))
	}
}

func removeFiles(pattern string) func(t *testing.T, member string) {
	return func(t *testing.T, member string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(member, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// backupInPlace gives the database the trailer of a backup; spoiled, one that no longer fits.
func backupInPlace(spoiled bool) func(t *testing.T, member string) {
	return func(t *testing.T, member string) {
		t.Helper()
		path := filepath.Join(member, "snap", "db")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if spoiled {
			sum[0] ^= 1
		}
		if err := os.WriteFile(path, append(b, sum[:]...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// emptied replaces the database by one without content, as a server makes it.
func emptied(t *testing.T, member string) {
	t.Helper()
	removeFiles("snap/db")(t, member)
	db, err := bbolt.Open(filepath.Join(member, "snap", "db"), 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta", "members", "cluster", "lease", "alarm", "auth", "authUsers",
			"authRoles", "members_removed"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// logAnew puts the log of a freshly bootstrapped member in the place of node2's; the orphan keeps its snapshot files.
func logAnew(keepSnap, keepDB bool) func(t *testing.T, member string) {
	return func(t *testing.T, member string) {
		t.Helper()
		fresh := tell(t, t.TempDir(), false, none(3), a1, a2, a3)
		fresh.done()
		other := filepath.Join(fresh.hands[1].Dir, "member")
		if err := os.RemoveAll(filepath.Join(member, "wal")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(other, "wal"), filepath.Join(member, "wal")); err != nil {
			t.Fatal(err)
		}
		if !keepSnap {
			removeFiles("snap/*.snap")(t, member)
		}
		if !keepDB {
			if err := os.Rename(filepath.Join(other, "snap", "db"), filepath.Join(member, "snap", "db")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// liveCopy makes the signs of a copy of a running member: a log that ends inside of a record, pages of bucket key that
// are not what they should be, a database that is ahead of the log.
func liveCopy(tail, page, ahead bool) func(t *testing.T, member string) {
	return func(t *testing.T, member string) {
		t.Helper()
		if tail {
			file, at := lastSegment(t, member)
			if err := os.Truncate(file, at[len(at)-2]+20); err != nil {
				t.Fatal(err)
			}
		}
		if ahead {
			editDB(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"),
					binary.BigEndian.AppendUint64(nil, 400))
			})(t, member)
		}
		if page {
			f, err := os.OpenFile(filepath.Join(member, "snap", "db"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			for p := int64(2); p < 30; p++ {
				head := make([]byte, 32)
				if _, err := f.ReadAt(head, p*4096); err == nil && binary.LittleEndian.Uint64(head) == uint64(p) &&
					head[8] == 2 && head[24] == 17 {
					if _, err := f.WriteAt([]byte{0xff}, p*4096); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPartsOfADataDir(t *testing.T) {
	nothing := func(*testing.T, string) {}
	runTales(t, []tale{
		{name: "whole", tell: edited(nothing), class: "healthy"},
		{name: "log begun anew beside the database", of: []string{"node2"}, tell: edited(logAnew(true, true)),
			class: "member-lost-data", cause: "wal-removed-db-kept", certainty: "proof", checks: []string{"X03"}},
		{name: "log begun anew, among others", tell: edited(logAnew(false, true)), class: "member-lost-data",
			cause: "wal-removed-db-kept", certainty: "proof"},
		{name: "log begun anew beside snapshot files", of: []string{"node2"}, tell: edited(logAnew(true, false)),
			class: "member-lost-data", cause: "wal-removed-db-kept", certainty: "proof"},
		{name: "everything begun anew", tell: edited(logAnew(false, false)), class: "member-lost-data",
			cause: "wiped-member-rejoined-same-id", not: []string{"wal-removed-db-kept"}},
		{name: "database removed", tell: edited(removeFiles("snap/db")), class: "member-lost-data",
			cause: "db-or-snap-dir-removed", certainty: "proof", checks: []string{"X03"}},
		{name: "database created anew", of: []string{"node2"}, tell: edited(emptied), class: "member-lost-data",
			cause: "db-or-snap-dir-removed", certainty: "proof"},
		{name: "a new member without data", of: []string{"node1"},
			tell: func(t *testing.T, root string) { tell(t, root, false, none(1), a1).done() }, class: "healthy",
			not: []string{"db-or-snap-dir-removed", "wal-removed-db-kept"}},
		{name: "snapshot files removed", tell: edited(removeFiles("snap/*.snap")), class: "healthy",
			checks: []string{"X03"}, causes: []string{"snap-files-removed"}},
		{name: "a backup in the place of the database", tell: edited(backupInPlace(false)), class: "torn-copy",
			cause: "saved-snapshot-used-as-db", certainty: "proof", checks: []string{"X03"}},
		{name: "such a backup, written to since", of: []string{"node2"}, tell: edited(backupInPlace(true)),
			class: "torn-copy", cause: "saved-snapshot-used-as-db", certainty: "strong"},
		{name: "torn log and pages", tell: edited(liveCopy(true, true, false)), class: "torn-copy",
			cause: "torn-live-copy", certainty: "strong", checks: []string{"X05"}},
		{name: "pages and a database ahead", of: []string{"node2"}, tell: edited(liveCopy(false, true, true)),
			class: "torn-copy", cause: "torn-live-copy", certainty: "strong", checks: []string{"X05"}},
		{name: "torn log alone", tell: edited(liveCopy(true, false, false)), class: "wal-damage",
			cause: "wal-torn-tail", not: []string{"torn-live-copy"}},
		{name: "pages alone", tell: edited(liveCopy(false, true, false)), class: "db-damage",
			cause: "bbolt-page-damage", not: []string{"torn-live-copy"}},
	})
}

// versions writes storage and cluster versions of the three members, and a downgrade.
func versions(cluster, downgrade string, storage ...string) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		for i, h := range s.hands {
			if storage[i] != "" {
				h.Row("meta", "storageVersion", storage[i])
			}
			h.Row("cluster", "clusterVersion", cluster)
			if downgrade != "" {
				h.Row("cluster", "downgrade", downgrade)
			}
		}
		s.done()
	}
}

// v2Put is a plain put of a v2 client.
func v2Put(path string) pb.Request {
	return pb.Request{ID: clustertest.RequestID(a1, begin1, 250), Method: "PUT", Path: path, Val: "x"}
}

func v2Keys(keys ...string) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		t.Helper()
		s := bootstrap(t, root)
		s.commit()
		for _, h := range s.hands {
			for n, k := range keys {
				h.V2Request(s.term, s.index+uint64(n)+1, v2Put(k), keys[:n+1]...)
			}
			h.State(s.term, a1, s.index+uint64(len(keys)))
			h.Snapshot(s.term, s.index+uint64(len(keys)), a1, a2, a3)
		}
		s.index += uint64(len(keys))
		s.puts(5)
		s.done()
	}
}

func TestVersionsAndV2(t *testing.T) {
	mismatch := []string{"downgrade-or-storage-version-mismatch"}
	runTales(t, []tale{
		{name: "equal", tell: versions("3.6.0", "", "3.6.0", "3.6.0", "3.6.0"), class: "healthy", not: mismatch},
		{name: "not written yet", tell: versions("3.6.0", "", "3.6.0", "", "3.6.0"), class: "healthy", not: mismatch},
		{name: "one above the others", tell: versions("3.6.0", "", "3.6.0", "3.7.0", "3.6.0"), class: "healthy",
			causes: mismatch, checks: []string{"X04"}},
		{name: "above the cluster", tell: versions("3.5.0", "", "3.6.0", "3.6.0", "3.6.0"), class: "healthy",
			causes: mismatch, checks: []string{"X04"}},
		{name: "a downgrade is open", tell: versions("3.6.0", `{"target-version":"3.5.0","enabled":true}`, "3.6.0",
			"3.6.0", "3.6.0"), class: "healthy", causes: mismatch, checks: []string{"X04"}},
		{name: "a downgrade was cancelled", tell: versions("3.6.0", `{"target-version":"","enabled":false}`, "3.6.0",
			"3.6.0", "3.6.0"), class: "healthy", not: mismatch},
		{name: "v2 keys", tell: v2Keys("/1/app/config"), class: "healthy", causes: []string{"v2-content-blocks-36"},
			checks: []string{"M13"}},
		{name: "etcd's own v2 content", tell: v2Keys(), class: "healthy", not: []string{"v2-content-blocks-36"}},
	})
}
