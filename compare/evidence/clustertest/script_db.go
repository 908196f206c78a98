package clustertest

import (
	"encoding/binary"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/release"
)

// writeDB writes the database of one member from its world.
func (s *Script) writeDB(tb testing.TB, path string, member int) {
	tb.Helper()
	w := s.world(member)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistMapType})
	synthOK(tb, err)
	synthOK(tb, db.Update(func(tx *bbolt.Tx) error {
		if err := (Synth{Members: s.Members}).meta(tx, s.saved(member)); err != nil {
			return err
		}
		for _, write := range []func(*bbolt.Tx) error{w.writeKeys, w.writeLeases, w.writeAlarms, w.writeAuth,
			s.writeMeta} {
			if err := write(tx); err != nil {
				return err
			}
		}
		return nil
	}))
	synthOK(tb, db.Close())
}

// writeMeta writes bucket meta as in Version.
func (s *Script) writeMeta(tx *bbolt.Tx) error {
	version, err := release.Parse(s.Version)
	if err != nil {
		return err
	}
	meta := tx.Bucket([]byte("meta"))
	switch {
	case version.Has(release.TermInMeta).Excluded():
		if err := meta.Delete([]byte("term")); err != nil {
			return err
		}
	case len(s.steps) > 0:
		if err := meta.Put([]byte("term"), binary.BigEndian.AppendUint64(nil,
			s.steps[len(s.steps)-1].Term)); err != nil {
			return err
		}
	}
	if version.Has(release.StorageVersion).Certain() {
		if err := meta.Put([]byte("storageVersion"), []byte(s.Version)); err != nil {
			return err
		}
	}
	return tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte(s.Version))
}

func (w *world) writeKeys(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte("key"))
	if err != nil {
		return err
	}
	for _, r := range w.records {
		data, err := r.kv.Marshal()
		if err != nil {
			return err
		}
		if err := b.Put(revisionKey(r.main, r.sub, r.del), data); err != nil {
			return err
		}
	}
	if w.compact == 0 {
		return nil
	}
	for _, mark := range []string{"scheduledCompactRev", "finishedCompactRev"} {
		if err := tx.Bucket([]byte("meta")).Put([]byte(mark), revisionKey(w.compact, 0, false)); err != nil {
			return err
		}
	}
	return nil
}

// revisionKey returns the key of a record in bucket key.
func revisionKey(main, sub int64, del bool) []byte {
	k := append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_')
	k = binary.BigEndian.AppendUint64(k, uint64(sub))
	if del {
		k = append(k, 't')
	}
	return k
}

func (w *world) writeLeases(tx *bbolt.Tx) error {
	for id, l := range w.leases {
		data, err := l.Marshal()
		if err != nil {
			return err
		}
		if err := tx.Bucket([]byte("lease")).Put(binary.BigEndian.AppendUint64(nil, uint64(id)), data); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) writeAlarms(tx *bbolt.Tx) error {
	for a := range w.alarms {
		k, err := (&etcdserverpb.AlarmMember{MemberID: a.member, Alarm: a.typ}).Marshal()
		if err != nil {
			return err
		}
		if err := tx.Bucket([]byte("alarm")).Put(k, nil); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) writeAuth(tx *bbolt.Tx) error {
	auth := tx.Bucket([]byte("auth"))
	on := []byte{0}
	if w.auth {
		on[0] = 1
	}
	if err := auth.Put([]byte("authEnabled"), on); err != nil {
		return err
	}
	if err := auth.Put([]byte("authRevision"), binary.BigEndian.AppendUint64(nil, w.authRev)); err != nil {
		return err
	}
	for name, u := range w.users {
		data, err := u.Marshal()
		if err != nil {
			return err
		}
		if err := tx.Bucket([]byte("authUsers")).Put([]byte(name), data); err != nil {
			return err
		}
	}
	for name, r := range w.roles {
		data, err := r.Marshal()
		if err != nil {
			return err
		}
		if err := tx.Bucket([]byte("authRoles")).Put([]byte(name), data); err != nil {
			return err
		}
	}
	return nil
}
