package replay_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// A database that is a little ahead of its log has an index that is one bit away from one below the log's beginning. No
// sound database has such an index, so the stored one stands.
func TestIndexFromBeforeTheLogIsNotBelieved(t *testing.T) {
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 16 << 10
	s := clustertest.Synth{Members: 3, Entries: 1090, Keys: 20, Value: 40, Purged: 900}
	root := t.TempDir()
	dirs := s.Write(t, root)
	short := s
	short.Entries = 1010
	dir := filepath.Join(dirs[1], "member", "wal")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	short.WriteWAL(t, dir, 1)
	wal.SegmentSizeBytes = old
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	set, err := evidence.Open(context.Background(), specs, evidence.Options{Deep: true, List: true})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	m := set.Members[1]
	if first, stored := m.WAL.Summary.FirstIndex, m.StoredIndex(); first <= stored-1024 || stored <= m.LastIndex() ||
		stored < 1024 {
		t.Fatalf("the log begins at %d and ends at %d, the stored index is %d", first, m.LastIndex(), stored)
	}
	if _, err := replay.RunWithPlausibleIndex(context.Background(), set.Members, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	if m.HasIndexOverride() {
		t.Errorf("index %d believed instead of %d, the log begins at %d", m.ConsistentIndex(), m.StoredIndex(),
			m.WAL.Summary.FirstIndex)
	}
}

// A log that lost its second half, beside a database compacted above what the first half wrote: no record belongs to an
// entry, so nothing shows that the database ends where the log does. Its index stands, although one cleared bit leads
// into the log.
func TestIndexStandsWhereNoRecordBelongsToTheLog(t *testing.T) {
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 8 << 10
	defer func() { wal.SegmentSizeBytes = old }()
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	h.State(2, 0xa1, 1)
	h.Request(2, 2, nil)
	guarded := func(index uint64) *etcdserverpb.InternalRaftRequest {
		key := fmt.Appendf(nil, "k%d", index%7)
		return &etcdserverpb.InternalRaftRequest{
			Header: &etcdserverpb.RequestHeader{ID: clustertest.RequestID(0xa1, 1763000000000, index)},
			Txn: &etcdserverpb.TxnRequest{
				Compare: []*etcdserverpb.Compare{{Target: etcdserverpb.Compare_MOD, Key: key,
					TargetUnion: &etcdserverpb.Compare_ModRevision{ModRevision: int64(index) - 8}}},
				Success: []*etcdserverpb.RequestOp{{Request: &etcdserverpb.RequestOp_RequestPut{
					RequestPut: &etcdserverpb.PutRequest{Key: key, Value: fmt.Appendf(nil, "value %d", index)}}}}}}
	}
	for index := uint64(3); index <= 197; index++ {
		h.Request(2, index, guarded(index))
		h.State(2, 0xa1, index)
		if index == 150 {
			h.Snapshot(2, index, 0xa1)
		}
	}
	at := func(rev int64) string {
		b := append(binary.BigEndian.AppendUint64(nil, uint64(rev)), '_')
		return string(binary.BigEndian.AppendUint64(b, 0))
	}
	for rev := int64(249); rev <= 255; rev++ { // the database holds what the last seven made of the keys
		kv, err := (&mvccpb.KeyValue{Key: fmt.Appendf(nil, "k%d", rev%7), Value: fmt.Appendf(nil, "value %d", rev),
			CreateRevision: rev % 7, ModRevision: rev, Version: 30}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		h.Row("key", at(rev), string(kv))
	}
	h.Row("meta", "scheduledCompactRev", at(255))
	h.Row("meta", "finishedCompactRev", at(255))
	h.Member(0xa1, false, true)
	dir := h.Close(255, 2)
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: dir}}, evidence.Options{Deep: true, List: true})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	m := set.Members[0]
	if m.LastIndex() != 197 || m.StoredIndex() != 255 || m.WAL.Summary.FirstIndex < 10 {
		t.Fatalf("the log begins at %d and ends at %d", m.WAL.Summary.FirstIndex, m.LastIndex())
	}
	if _, err := replay.RunWithPlausibleIndex(t.Context(), set.Members, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	if m.HasIndexOverride() {
		t.Errorf("index %d instead of %d", m.ConsistentIndex(), m.StoredIndex())
	}
}
