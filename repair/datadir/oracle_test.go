package datadir_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v2store"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// fullDisk is what a child process of the full disk test runs.
var fullDisk func(how string) int

func TestMain(m *testing.M) {
	if how := os.Getenv("DATADIR_FULL_DISK"); how != "" {
		os.Exit(fullDisk(how))
	}
	if src := os.Getenv("DATADIR_CLONE"); src != "" {
		os.Exit(cloneInChild(src, os.Getenv("DATADIR_DST")))
	}
	evidencetest.Main(m)
}

// readDir reads a data dir with etcd's own packages, as a server does at boot, on a scratch copy.
type readDir struct {
	metadata           etcdserverpb.Metadata
	state              raftpb.HardState
	entries            []raftpb.Entry
	snap               *raftpb.Snapshot
	members            map[string]*membership.Member
	removed, removedV2 int
	bucket             []uint64
	index              uint64
	term               uint64
}

func readWithEtcd(t *testing.T, dir string) readDir {
	t.Helper()
	dir = evidencetest.Copy(t, dir)
	lg := zap.NewNop()
	walDir, snapDir := filepath.Join(dir, "member", "wal"), filepath.Join(dir, "member", "snap")
	snaps, err := wal.ValidSnapshotEntries(lg, walDir)
	ok(t, err)
	var r readDir
	r.snap, err = snap.New(lg, snapDir).LoadNewestAvailable(snaps)
	ok(t, err)
	w, err := wal.Open(lg, walDir, walpb.Snapshot{Index: r.snap.Metadata.Index, Term: r.snap.Metadata.Term})
	ok(t, err)
	meta, state, ents, err := w.ReadAll()
	ok(t, err)
	ok(t, w.Close())
	ok(t, r.metadata.Unmarshal(meta))
	r.state, r.entries = state, ents
	st := v2store.New("/0", "/1")
	ok(t, st.Recovery(r.snap.Data))
	c := membership.NewCluster(lg)
	c.SetStore(st)
	r.members = map[string]*membership.Member{}
	fromStore, gone := c.MembersFromStore()
	r.removedV2 = len(gone)
	for id, m := range fromStore {
		r.members[id.String()] = m
	}
	be := backend.NewDefaultBackend(lg, filepath.Join(snapDir, "db"))
	defer be.Close()
	r.index, r.term = schema.ReadConsistentIndex(be.ReadTx())
	mb := schema.NewMembershipBackend(lg, be)
	bucket, removed := mb.MustReadMembersFromBackend()
	r.removed = len(removed)
	for id := range bucket {
		r.bucket = append(r.bucket, uint64(id))
	}
	slices.Sort(r.bucket)
	return r
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
