package dumplog_test

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// walWriter writes logs with etcd's own WAL package, the only writer that counts.
type walWriter struct {
	t   testing.TB
	w   *wal.WAL
	dir string
}

const (
	testMember  = 0xc834da0311299bc7
	testCluster = 0xa17ce8aab99df29d
)

func newWAL(t testing.TB, dir string) *walWriter {
	t.Helper()
	return newWALOf(t, dir, testMember, testCluster)
}

func newWALOf(t testing.TB, dir string, member, cluster uint64) *walWriter {
	t.Helper()
	meta, err := (&etcdserverpb.Metadata{NodeID: member, ClusterID: cluster}).Marshal()
	must(t, err)
	w, err := wal.Create(zap.NewNop(), dir, meta)
	must(t, err)
	w.SetUnsafeNoFsync()
	return &walWriter{t: t, w: w, dir: dir}
}

func (w *walWriter) save(st raftpb.HardState, ents ...raftpb.Entry) {
	w.t.Helper()
	must(w.t, w.w.Save(st, ents))
}

func (w *walWriter) snapshot(index, term uint64) {
	w.t.Helper()
	must(w.t, w.w.SaveSnapshot(walpb.Snapshot{Index: index, Term: term,
		ConfState: &raftpb.ConfState{Voters: []uint64{testMember}}}))
}

func (w *walWriter) close() {
	w.t.Helper()
	must(w.t, w.w.Close())
}

func put(key string, value []byte, id uint64) []byte {
	r := etcdserverpb.InternalRaftRequest{
		Header: &etcdserverpb.RequestHeader{ID: id},
		Put:    &etcdserverpb.PutRequest{Key: []byte(key), Value: value},
	}
	b, err := r.Marshal()
	if err != nil {
		panic(err)
	}
	return b
}

// writeMany writes n puts of the given value size in batches, as a busy server does.
func writeMany(t testing.TB, dir string, n, valueSize int) {
	t.Helper()
	w := newWAL(t, dir)
	value := make([]byte, valueSize)
	for i := range value {
		value[i] = byte(i*7 + 1)
	}
	const batch = 50
	for i := 1; i <= n; i += batch {
		ents := make([]raftpb.Entry, 0, batch)
		for j := i; j < i+batch && j <= n; j++ {
			id := uint64(0x9bc7)<<48 | uint64(1763000000000+j/256)<<8&(1<<48-1) | uint64(j&255)
			ents = append(ents, raftpb.Entry{Term: 2, Index: uint64(j),
				Data: put(fmt.Sprintf("/registry/pods/ns-%d/pod-%06d", j%17, j%5000), value, id)})
		}
		w.save(raftpb.HardState{Term: 2, Vote: testMember, Commit: uint64(i)}, ents...)
	}
	w.close()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
