package replay_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

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
