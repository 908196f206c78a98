package dumpdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// sameAsBbolt holds our walk against bbolt's own, row by row and bucket by bucket.
func sameAsBbolt(t *testing.T, path string) {
	t.Helper()
	db := open(t, path)
	ref, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	fatal(t, err)
	defer ref.Close()
	var names, ours []string
	buckets, damage := db.Buckets()
	if len(damage) > 0 {
		t.Fatal(damage)
	}
	for _, b := range buckets {
		ours = append(ours, b.Name)
	}
	err = ref.View(func(tx *bbolt.Tx) error {
		if tx.ID() != int(db.Meta().Txid) {
			t.Errorf("bbolt reads transaction %d, we %d", tx.ID(), db.Meta().Txid)
		}
		for err := range tx.Check() {
			t.Errorf("bbolt check: %v", err)
		}
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			names = append(names, string(name))
			return sameRows(db, string(name), b)
		})
	})
	fatal(t, err)
	if diff := cmp.Diff(names, ours); diff != "" {
		t.Error(diff)
	}
}

func sameRows(db *DB, name string, b *bbolt.Bucket) error {
	type kv struct{ k, v []byte }
	var want []kv
	if err := b.ForEach(func(k, v []byte) error { want = append(want, kv{k, v}); return nil }); err != nil {
		return err
	}
	i := 0
	for row, err := range db.Rows(name) {
		if err != nil {
			return err
		}
		if i >= len(want) || !bytes.Equal(row.Key, want[i].k) || !row.Bucket && !bytes.Equal(row.Value, want[i].v) {
			return fmt.Errorf("bucket %s row %d: %q", name, i, row.Key)
		}
		at := make([]byte, len(row.Key))
		if _, err := db.f.read(at, row.Offset); err != nil || !bytes.Equal(at, row.Key) {
			return fmt.Errorf("bucket %s: offset 0x%x does not hold key %q", name, row.Offset, row.Key)
		}
		i++
	}
	if i != len(want) {
		return fmt.Errorf("bucket %s: %d rows, bbolt has %d", name, i, len(want))
	}
	return nil
}

func TestOracleBboltWalk(t *testing.T) {
	for _, s := range sources(t) {
		if !s.damaged() {
			t.Run(s.name(), func(t *testing.T) { sameAsBbolt(t, evidencetest.Copy(t, s.path)) })
		}
	}
}

// Page sizes, stored freelists, overflow pages and nested buckets that etcd does not make by itself.
func TestOracleBboltShapes(t *testing.T) {
	for _, size := range []int{1024, 4096, 16384, 65536} {
		for _, freelist := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "db")
			ref, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: size, NoFreelistSync: !freelist, NoSync: true})
			fatal(t, err)
			fatal(t, ref.Update(func(tx *bbolt.Tx) error { return fillShapes(tx, size) }))
			fatal(t, ref.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("dropped")) }))
			var free int
			fatal(t, ref.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("tiny")).Put([]byte("a"), nil) }))
			free = ref.Stats().FreePageN + ref.Stats().PendingPageN
			fatal(t, ref.Close())
			sameAsBbolt(t, path)
			db := open(t, path)
			r, err := db.Check(context.Background())
			fatal(t, err)
			if db.PageSize() != size || len(r.Damage) > 0 || r.FreelistStored != freelist || r.Lost != 0 ||
				!r.Complete || r.Pages != r.Reachable+r.Free {
				t.Errorf("page size %d, freelist %v: %+v", size, freelist, r)
			}
			for row, err := range db.Rows("tiny/nested") {
				if err != nil || string(row.Key) != "nk" || string(row.Value) != "nv" {
					t.Errorf("nested row %q %q %v", row.Key, row.Value, err)
				}
			}
			if freelist && int(r.Free) != free {
				t.Errorf("%d free pages, bbolt has %d", r.Free, free)
			}
		}
	}
}

func fillShapes(tx *bbolt.Tx, size int) error {
	var errs []error
	put := func(b *bbolt.Bucket, k, v []byte) { errs = append(errs, b.Put(k, v)) }
	for _, name := range []string{"big", "tiny", "empty", "dropped"} {
		b, err := tx.CreateBucket([]byte(name))
		errs = append(errs, err)
		switch name {
		case "big", "dropped":
			for i := range 2000 {
				put(b, fmt.Appendf(nil, "key-%06d", i*7919%2000), bytes.Repeat([]byte{byte(i)}, i%97*size/64))
			}
		case "tiny":
			put(b, []byte("k"), []byte("v"))
			n, err := b.CreateBucket([]byte("nested"))
			errs = append(errs, err)
			put(n, []byte("nk"), []byte("nv"))
		}
	}
	return errors.Join(errs...)
}

// hashOracle computes hashes with the server's own mvcc store on a copy.
func hashOracle(t *testing.T, path string, revs []int64) map[int64]HashKV {
	t.Helper()
	cfg := backend.DefaultBackendConfig(zap.NewNop())
	cfg.Path, cfg.MmapSize, cfg.UnsafeNoFsync = path, 1<<26, true
	be := backend.New(cfg)
	defer be.Close()
	s := mvcc.NewStore(zap.NewNop(), be, &lease.FakeLessor{}, mvcc.StoreConfig{})
	defer s.Close()
	out := map[int64]HashKV{}
	for _, rev := range revs {
		h, _, err := s.HashStorage().HashByRev(rev)
		if err == nil {
			out[rev] = HashKV{h.Hash, h.Revision, h.CompactRevision}
		}
	}
	return out
}

// At every revision in reach the hash is the server's, and where the server refuses we refuse.
func TestOracleHashKV(t *testing.T) {
	for _, s := range sources(t) {
		if s.damaged() || s.node == "node3" && s.incident != "l-compaction-skew" {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			db := open(t, s.path)
			cur, err := db.CurrentRev()
			fatal(t, err)
			revs := []int64{0, cur + 1, cur + 100}
			for r := int64(1); r <= cur; r += 1 + cur/12 {
				revs = append(revs, r)
			}
			want := hashOracle(t, evidencetest.Copy(t, s.path), revs)
			for _, rev := range revs {
				got, err := db.HashKV(context.Background(), rev)
				if w, ok := want[rev]; ok != (err == nil) || got != w {
					t.Errorf("revision %d: %+v %v, server %+v", rev, got, err, w)
				}
				if err != nil && !errors.Is(err, ErrCompacted) && !errors.Is(err, ErrFutureRev) {
					t.Errorf("revision %d: %v", rev, err)
				}
			}
		})
	}
}

// The decoders of the small buckets say what etcd's own readers say. The damaged file is left out: the server's backend
// kills the process on it.
func TestOracleSchema(t *testing.T) {
	for _, s := range sources(t) {
		if s.damaged() {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			db := open(t, s.path)
			cfg := backend.DefaultBackendConfig(zap.NewNop())
			cfg.Path, cfg.MmapSize, cfg.UnsafeNoFsync = evidencetest.Copy(t, s.path), 1<<26, true
			be := backend.New(cfg)
			defer be.Close()
			sameMembers(t, db, be)
			sameAuth(t, db, be)
			sameMeta(t, db, be)
			alarms, err := schema.NewAlarmBackend(zap.NewNop(), be).GetAllAlarms()
			fatal(t, err)
			ours, err := db.Alarms()
			fatal(t, err)
			if len(alarms) != len(ours) {
				t.Errorf("alarms %v, ours %v", alarms, ours)
			}
			for i, a := range alarms {
				if ID(a.MemberID) != ours[i].MemberID || int32(a.Alarm) != ours[i].Type {
					t.Errorf("alarm %v, ours %v", a, ours[i])
				}
			}
		})
	}
}

func sameMembers(t *testing.T, db *DB, be backend.Backend) {
	members, removed := schema.NewMembershipBackend(zap.NewNop(), be).MustReadMembersFromBackend()
	ours, err := db.Members()
	fatal(t, err)
	gone, err := db.RemovedMembers()
	fatal(t, err)
	if len(ours) != len(members) || len(gone) != len(removed) {
		t.Fatalf("%d members, %d removed; ours %v, %v", len(members), len(removed), ours, gone)
	}
	for _, m := range ours {
		want := membership.Member{ID: types.ID(m.ID), RaftAttributes: membership.RaftAttributes{PeerURLs: m.PeerURLs,
			IsLearner: m.IsLearner},
			Attributes: membership.Attributes{Name: m.Name, ClientURLs: m.ClientURLs}}
		if diff := cmp.Diff(want, *members[types.ID(m.ID)]); diff != "" {
			t.Error(diff)
		}
	}
	for _, id := range gone {
		if !removed[types.ID(id)] {
			t.Errorf("member %s is not removed", id)
		}
	}
}

func sameAuth(t *testing.T, db *DB, be backend.Backend) {
	auth := schema.NewAuthBackend(zap.NewNop(), be)
	users, roles := auth.GetAllUsers(), auth.GetAllRoles()
	tx := auth.ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	a, err := db.Auth()
	fatal(t, err)
	if a.Enabled != tx.UnsafeReadAuthEnabled() || a.Revision != tx.UnsafeReadAuthRevision() {
		t.Errorf("auth %v %d", a.Enabled, a.Revision)
	}
	if len(users) != len(a.Users) || len(roles) != len(a.Roles) {
		t.Fatalf("%d users, %d roles, ours %d, %d", len(users), len(roles), len(a.Users), len(a.Roles))
	}
	for i, u := range users {
		o := a.Users[i]
		if string(u.Name) != o.Name || !bytes.Equal(u.Password, o.Password) || !cmp.Equal(u.Roles, o.Roles) ||
			(u.Options != nil && u.Options.NoPassword) != o.NoPassword {
			t.Errorf("user %s differs", u.Name)
		}
	}
	for i, r := range roles {
		for n, p := range r.KeyPermission {
			o := a.Roles[i].Perms[n]
			if int32(p.PermType) != o.Type || !bytes.Equal(p.Key, o.Key) || !bytes.Equal(p.RangeEnd, o.RangeEnd) {
				t.Errorf("role %s: %v, ours %v", r.Name, p, o)
			}
		}
	}
}

func sameMeta(t *testing.T, db *DB, be backend.Backend) {
	tx := be.BatchTx()
	tx.LockOutsideApply()
	defer tx.Unlock()
	m, err := db.MetaBucket()
	fatal(t, err)
	index, term := schema.UnsafeReadConsistentIndex(tx)
	if m.ConsistentIndex == nil && index != 0 || m.ConsistentIndex != nil && *m.ConsistentIndex != index ||
		m.Term != nil && *m.Term != term {
		t.Errorf("consistent index %d/%d, ours %v/%v", term, index, m.Term, m.ConsistentIndex)
	}
	if cs := schema.UnsafeConfStateFromBackend(zap.NewNop(), tx); (cs == nil) != (m.ConfState == nil) || cs != nil &&
		!cmp.Equal(ids(cs.Voters), m.ConfState.Voters) {
		t.Errorf("ConfState %v, ours %v", cs, m.ConfState)
	}
	leases := schema.MustUnsafeGetAllLeases(tx)
	ours, err := db.Leases()
	fatal(t, err)
	if len(leases) != len(ours) {
		t.Fatalf("%d leases, ours %d", len(leases), len(ours))
	}
	for i, l := range leases {
		if ID(l.ID) != ours[i].ID || l.TTL != ours[i].TTL || l.RemainingTTL != ours[i].RemainingTTL {
			t.Errorf("lease %v, ours %v", l, ours[i])
		}
	}
}

func TestRevBytes(t *testing.T) {
	for _, r := range []Rev{{1, 0}, {1043, 2}, {1 << 62, 1 << 40}} {
		want := make([]byte, 17)
		binary.BigEndian.PutUint64(want, uint64(r.Main))
		want[8] = '_'
		binary.BigEndian.PutUint64(want[9:], uint64(r.Sub))
		got := mvcc.BytesToRev(r.Bytes())
		if !bytes.Equal(r.Bytes(), want) || got.Main != r.Main || got.Sub != r.Sub {
			t.Errorf("%s: %x", r, r.Bytes())
		}
	}
}
