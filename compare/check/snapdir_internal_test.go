package check

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// withSnapDir is a data dir with an empty snap folder and without a log and a database.
func withSnapDir(t *testing.T, name string) *evidence.Member {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	set, err := evidence.Open(context.Background(), []evidence.Spec{{Where: dir, Name: name}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set.Members[0]
}

// addSnap adds a .snap file with a v2 store, and its record in the log.
func addSnap(m *evidence.Member, index uint64, v *dumplog.V2Store) *evidence.Member {
	m.Snap.Files = append(m.Snap.Files, &dumplog.SnapFile{File: "s.snap", Term: 2, Index: index, NameTerm: 2,
		NameIndex: index, V2: v})
	m.WAL.Summary.Snapshots = append(m.WAL.Summary.Snapshots, dumplog.SnapshotRecord{Term: 2, Index: index})
	return m
}
