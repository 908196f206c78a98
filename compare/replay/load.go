package replay

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// loadStretch is how many revisions are read first of those below a place, the newest ones. The next stretch has twice
// as many.
const loadStretch = 1 << 16

// deadBytes is about what a deleted key takes, in bytes.
const deadBytes = 100

// loadKeys returns the keys that the database had at a revision, read from the newest records on: of the older records
// of a key only the name is looked at. It is nil for a database that has to be read in order: one that is damaged, has
// no live keys, or has deleted many more than it has.
func (su *subject) loadKeys(at, stretch int64) *apply.Keys {
	if su.liveKeys() == 0 || su.m.DB.KVDamaged {
		return nil
	}
	l := keyLoader{keys: su.room.NewKeys(su.liveKeys()), dead: map[string]int64{}, bump: su.m.DB.KV.BumpMarker,
		room: su.room}
	l.most = max(su.liveKeys(), loadStretch)
	for end := at + 1; end > 0; stretch *= 2 {
		from := max(end-stretch, 0)
		if !l.read(su.m.DB.Handle, from, end) {
			l.keys.Release()
			return nil
		}
		if su.room.Exceeded() {
			break // the replay ends
		}
		end = from
	}
	return l.keys
}

// keyLoader collects the newest state of keys. dead are the deleted ones, with the revision of the tombstone.
type keyLoader struct {
	keys *apply.Keys
	dead map[string]int64
	bump dumpdb.Rev
	// most is how many deleted keys are kept at most, in what the room has left.
	most int
	room *apply.Room
}

// read takes the records of a stretch of revisions, below which nothing was read yet. It is false where they cannot be
// read, or too many keys are deleted.
func (l *keyLoader) read(db *dumpdb.DB, from, end int64) bool {
	for rev, err := range db.RevisionsBetween(dumpdb.Rev{Main: from}, dumpdb.Rev{Main: end}) {
		if err != nil || rev.Err != nil || len(l.dead) > l.most || !l.room.Fits(int64(len(l.dead))*deadBytes) {
			return false
		}
		if rev.Rev == l.bump && l.bump != (dumpdb.Rev{}) || l.dead[string(rev.KV.Key)] >= end {
			continue
		}
		k := l.keys.Find(rev.KV.Key)
		if k != nil && k.Mod >= end {
			continue
		}
		if rev.Tombstone {
			l.keys.Remove(string(rev.KV.Key))
			l.dead[string(rev.KV.Key)] = rev.Main
			continue
		}
		delete(l.dead, string(rev.KV.Key))
		l.keys.Put(apply.Key{Name: nameOf(k, rev.KV.Key), Create: rev.KV.CreateRevision, Mod: rev.Main,
			Version: rev.KV.Version, Lease: rev.KV.Lease, Sum: apply.SumOf(rev.KV.Value), Sub: rev.Rev.Sub})
	}
	return true
}

// nameOf returns the name in memory that the key has already, if it is known.
func nameOf(k *apply.Key, name []byte) string {
	if k != nil {
		return k.Name
	}
	return string(name)
}
