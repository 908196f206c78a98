package datadir_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// edited copies src with edits and opens the copy with etcd's backend.
func edited(t *testing.T, src string, edits ...datadir.Edit) (string, backend.Backend) {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "db")
	ok(t, datadir.CopyDB(context.Background(), dst, src, edits...))
	be := backend.NewDefaultBackend(zap.NewNop(), evidencetest.Copy(t, dst))
	t.Cleanup(func() { _ = be.Close() })
	return dst, be
}

func TestEditsAreReadByEtcd(t *testing.T) {
	src := synthDB(t, 100)
	evidencetest.Unchanged(t, src)
	alarms := [][2]uint64{{0xa1, 1}, {0xa1, 2}, {0xfedcba9876543210, 2}}
	prepare := func(tx *bolt.Tx) error {
		for _, a := range alarms {
			key, err := (&etcdserverpb.AlarmMember{MemberID: a[0], Alarm: etcdserverpb.AlarmType(a[1])}).Marshal()
			if err != nil {
				return err
			}
			if err := tx.Bucket([]byte("alarm")).Put(key, nil); err != nil {
				return err
			}
		}
		return nil
	}
	members := []datadir.Member{{ID: 0xb1, Name: "b", PeerURLs: []string{"http://b:1"},
		ClientURLs: []string{"http://b:2"}}, {ID: 0xb2, PeerURLs: []string{"http://c:1"}, IsLearner: true}}
	_, be := edited(t, src, prepare, datadir.SetConsistentIndex(77), datadir.SetTerm(9),
		datadir.SetConfState([]uint64{1 << 63, 2}, []uint64{3}),
		datadir.SetStorageVersion("3.6.0"), datadir.SetClusterVersion("3.6.0"), datadir.SetAuthRevision(42),
		datadir.SetMembers(members, []uint64{0xdead}),
		datadir.ClearAlarm(0xa1, 2))
	lg := zap.NewNop()
	if i, term := schema.ReadConsistentIndex(be.ReadTx()); i != 77 || term != 9 {
		t.Errorf("consistent index %d/%d", term, i)
	}
	cs := schema.UnsafeConfStateFromBackend(lg, be.ReadTx())
	if diff := cmp.Diff([]uint64{1 << 63, 2}, cs.Voters) + cmp.Diff([]uint64{3}, cs.Learners); diff != "" {
		t.Error(diff)
	}
	if v := schema.ReadStorageVersion(be.ReadTx()); v == nil || v.String() != "3.6.0" {
		t.Errorf("storage version %v", v)
	}
	got, removed := schema.NewMembershipBackend(lg, be).MustReadMembersFromBackend()
	want := map[types.ID]*membership.Member{
		0xb1: {ID: 0xb1, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{"http://b:1"}},
			Attributes: membership.Attributes{Name: "b", ClientURLs: []string{"http://b:2"}}},
		0xb2: {ID: 0xb2, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{"http://c:1"}, IsLearner: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !removed[0xdead] || len(removed) != 1 {
		t.Errorf("%s removed %v", diff, removed)
	}
	left, err := schema.NewAlarmBackend(lg, be).GetAllAlarms()
	if err != nil || len(left) != 2 || left[1].Alarm != etcdserverpb.AlarmType_NOSPACE ||
		left[0].MemberID != 0xfedcba9876543210 {
		t.Errorf("alarms left: %v, %v", left, err)
	}
	tx := schema.NewAuthBackend(lg, be).ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	if r := tx.UnsafeReadAuthRevision(); r != 42 {
		t.Errorf("auth revision %d", r)
	}
}

func TestEditsThatRemove(t *testing.T) {
	path, _ := edited(t, synthDB(t, 100), datadir.SetTerm(0), datadir.SetStorageVersion("3.6.0"),
		datadir.SetStorageVersion(""), datadir.SetClusterVersion(""),
		datadir.SetConfState(nil, nil), datadir.ClearDowngrade(), datadir.DropBucketKeys("members"),
		datadir.DropBucketKeys("lease", []byte("x")), datadir.ClearAlarm(0, 0))
	db, err := dumpdb.Open(path)
	ok(t, err)
	defer db.Close()
	m, err := db.MetaBucket()
	ok(t, err)
	if m.Term != nil || m.StorageVersion != "" || m.ConfState != nil || m.ConsistentIndex == nil {
		t.Errorf("meta %+v", m)
	}
	if list, err := db.Members(); err != nil || len(list) != 0 {
		t.Errorf("members %v, %v", list, err)
	}
}

// TestBumpRevision lets etcd's mvcc store start on the result, as a server does.
func TestBumpRevision(t *testing.T) {
	_, be := edited(t, synthDB(t, 100), datadir.BumpRevision(1_000_000), datadir.MarkCompacted())
	s := mvcc.NewStore(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	defer s.Close()
	if s.Rev() != 1_000_101 {
		t.Errorf("revision %d", s.Rev())
	}
	r, err := s.Range(context.Background(), []byte("/"), []byte("0"), mvcc.RangeOptions{})
	if err != nil || len(r.KVs) != 10 {
		t.Errorf("%d keys, %v", len(r.KVs), err)
	}
	if _, err := s.Range(context.Background(), []byte("/"), []byte("0"), mvcc.RangeOptions{Rev: 50}); !errors.Is(err,
		mvcc.ErrCompacted) {
		t.Errorf("read at an old revision: %v", err)
	}
	// A compaction that removed the last records left the revision where it was.
	rev := append(append(make([]byte, 6), 0x10, 0), "_\x00\x00\x00\x00\x00\x00\x00\x00"...)
	path, _ := edited(t, synthDB(t, 100), datadir.PutBucketKey("meta", []byte("finishedCompactRev"), rev),
		datadir.BumpRevision(1000), datadir.MarkCompacted())
	db, err := dumpdb.Open(path)
	ok(t, err)
	defer db.Close()
	if at, err := db.CurrentRev(); err != nil || at != 0x1000+1000 {
		t.Errorf("revision %d, %v, want %d", at, err, 0x1000+1000)
	}
	if err := datadir.CopyDB(context.Background(), filepath.Join(t.TempDir(), "db"), synthDB(t, 10),
		datadir.BumpRevision(1<<63)); err == nil {
		t.Error("a revision beyond int64 is taken")
	}
}

func TestEditsRefuseDamage(t *testing.T) {
	src := synthDB(t, 2000)
	b, err := os.ReadFile(src)
	ok(t, err)
	bad := filepath.Join(t.TempDir(), "db")
	copy(b[20*4096:], bytes.Repeat([]byte{0xee}, 4096))
	ok(t, os.WriteFile(bad, b, 0o600))
	dst := filepath.Join(t.TempDir(), "out")
	var damaged *datadir.DamagedError
	if err := datadir.CopyDB(context.Background(), dst, bad, datadir.SetTerm(4)); !errors.As(err, &damaged) {
		t.Errorf("damaged source: %v", err)
	}
	gone(t, dst)
	ok(t, datadir.CopyDB(context.Background(), dst, bad)) // bytes are bytes
	if got, _ := os.ReadFile(dst); !bytes.Equal(got, b) {
		t.Error("the plain copy differs")
	}
}

func TestWriteBackup(t *testing.T) {
	src := synthDB(t, 100)
	raw, err := os.ReadFile(src)
	ok(t, err)
	dst := filepath.Join(t.TempDir(), "backup.db")
	sum, err := datadir.WriteBackup(context.Background(), dst, src)
	ok(t, err)
	want := sha256.Sum256(raw)
	got, _ := os.ReadFile(dst)
	if !bytes.Equal(got, append(raw, want[:]...)) || !bytes.Equal(sum, want[:]) {
		t.Error("the backup is not the database and its sha256")
	}
	// A backup of a backup has one trailer, and a copy of one has none.
	again, plain := filepath.Join(t.TempDir(), "again.db"), filepath.Join(t.TempDir(), "db")
	_, err = datadir.WriteBackup(context.Background(), again, dst)
	ok(t, err)
	ok(t, datadir.CopyDB(context.Background(), plain, dst))
	b2, _ := os.ReadFile(again)
	db, _ := os.ReadFile(plain)
	if !bytes.Equal(b2, got) || !bytes.Equal(db, raw) {
		t.Error("the trailer was taken for content")
	}
	short := filepath.Join(t.TempDir(), "short")
	ok(t, os.WriteFile(short, raw[:5000], 0o600))
	if _, err := datadir.WriteBackup(context.Background(), filepath.Join(t.TempDir(), "x"), short); err == nil {
		t.Error("a file cut short becomes a backup")
	}
}
