package replay

import (
	"math"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// deadBytes is about what a deleted key takes, in bytes.
const deadBytes = 100

// mostDead is how many deleted keys are kept at most of a database that has fewer keys.
const mostDead = 1 << 16

// loadKeys returns the keys that the database had at a revision, read from the newest records on. It is nil for a
// database that has to be read in order: one that is damaged, has no live keys, or has deleted many more than it has.
func (su *subject) loadKeys(at int64) *apply.Keys {
	if su.liveKeys() == 0 || su.m.DB.KVDamaged {
		return nil
	}
	l := keyLoader{keys: su.room.NewKeys(su.liveKeys()), dead: map[string]int64{}, room: su.room,
		most: max(su.liveKeys(), mostDead)}
	if !l.load(keyParts(su.m.DB.Handle, su.m.DB.KV.BumpMarker), at) {
		l.keys.Release()
		return nil
	}
	return l.keys
}

// keyParts reads the records of bucket key in parts, the newest part first.
func keyParts(db *dumpdb.DB, bump dumpdb.Rev) *parts[*keyRecords] {
	p := newParts(func(part span, most int, into *keyRecords) (*keyRecords, int) {
		if into == nil {
			into = new(keyRecords)
		}
		return into, into.read(db, bump, part, most)
	})
	p.down = true
	return p
}

// keyRecords are records without their values, in order. broken is true if one of them cannot be read.
type keyRecords struct {
	records []keyRecord
	names   []byte
	broken  bool
}

// keyRecord is a record. name is where in names its key ends.
type keyRecord struct {
	rev                    dumpdb.Rev
	create, version, lease int64
	sum                    uint64
	name                   int
	tombstone              bool
}

// read takes the records of a part in place of those before, and counts them. More than most are too many, whether by
// their number or by the length of their names.
func (k *keyRecords) read(db *dumpdb.DB, bump dumpdb.Rev, part span, most int) int {
	k.records, k.names, k.broken = k.records[:0], k.names[:0], false
	for rev, err := range db.RevisionsBetween(dumpdb.Rev{Main: part.from}, dumpdb.Rev{Main: part.end}) {
		if k.broken = err != nil || rev.Err != nil; k.broken || len(k.records) > most {
			break
		}
		if len(k.names) > partBytes && most < math.MaxInt {
			return most + 1
		}
		if rev.Rev == bump && bump != (dumpdb.Rev{}) {
			continue
		}
		k.names = append(k.names, rev.KV.Key...)
		r := keyRecord{rev: rev.Rev, create: rev.KV.CreateRevision, version: rev.KV.Version, lease: rev.KV.Lease,
			name: len(k.names), tombstone: rev.Tombstone}
		if !r.tombstone {
			r.sum = apply.SumOf(rev.KV.Value)
		}
		k.records = append(k.records, r)
	}
	return len(k.records)
}

// keyLoader collects the newest state of keys. dead are the deleted ones, with the revision of the tombstone.
type keyLoader struct {
	keys *apply.Keys
	dead map[string]int64
	// most is how many deleted keys are kept at most, in what the room has left.
	most int
	room *apply.Room
}

// load takes all records up to a revision. It is false where they cannot be read, or too many keys are deleted. It ends
// early when the keys exceed their room.
func (l *keyLoader) load(records *parts[*keyRecords], at int64) bool {
	for part, read := range records.of(span{0, at + 1}) {
		if read.broken || len(l.dead) > l.most || !l.room.Fits(int64(len(l.dead))*deadBytes) {
			return false
		}
		if l.room.Exceeded() {
			break // the replay ends
		}
		l.take(part, read)
	}
	return true
}

// take takes the records of a part, below which nothing was taken yet.
func (l *keyLoader) take(part span, read *keyRecords) {
	from := 0
	for i := range read.records {
		if i%apply.Warmed == 0 {
			l.warm(read, i, from)
		}
		r := &read.records[i]
		name := read.names[from:r.name]
		from = r.name
		if len(l.dead) > 0 && l.dead[string(name)] >= part.end {
			continue
		}
		k := l.keys.Find(name)
		if k != nil && k.Mod >= part.end {
			continue
		}
		if r.tombstone {
			l.keys.Remove(string(name))
			l.dead[string(name)] = r.rev.Main
			continue
		}
		delete(l.dead, string(name))
		l.keys.Put(apply.Key{Name: nameOf(k, name), Create: r.create, Mod: r.rev.Main, Version: r.version,
			Lease: r.lease, Sum: r.sum, Sub: r.rev.Sub})
	}
}

// nameOf returns the name in memory that the key has already, if it is known.
func nameOf(k *apply.Key, name []byte) string {
	if k != nil {
		return k.Name
	}
	return string(name)
}
