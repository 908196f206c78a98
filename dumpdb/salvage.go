package dumpdb

import (
	"context"
	"iter"
	"math"
	"slices"
)

// Origin says where a salvaged record was found.
type Origin string

// The origins of a salvaged record.
const (
	// OriginLive is in the tree and the newest record of its key.
	OriginLive Origin = "live"
	// OriginOlder is in the tree, but a tombstone or superseded.
	OriginOlder Origin = "older"
	// OriginFree is in an unused page, left from an earlier transaction.
	OriginFree Origin = "free"
	// OriginUnreachable is in a damaged or lost page. It may also be in an unused page, if damage has cut its revision
	// from the tree.
	OriginUnreachable Origin = "unreachable"
)

// Salvaged is one record of bucket key, wherever it was found. Revision.Err is set if its value does not decode;
// nothing is guessed.
type Salvaged struct {
	Revision
	Origin Origin
	// Copies counts other finds of this revision with the same bytes, Conflicts those with different bytes.
	Copies, Conflicts int
}

// find is a record outside the tree: its place and a hash to compare it with others.
type find struct {
	rev     Rev
	place   Place
	size    int32
	keySize int8
	origin  Origin
	hash    keyHash
	decodes bool
}

// SalvageRevisions yields every record of bucket key that exists anywhere in the file, once each and in revision order:
// from the tree, and from damaged, lost and free pages. It yields damage of the tree as Rows does. Memory grows with
// the records outside the tree, not with their values.
func (db *DB) SalvageRevisions(ctx context.Context) iter.Seq2[Salvaged, error] {
	return func(yield func(Salvaged, error) bool) {
		finds, err := db.scanFreePages(ctx)
		if err != nil {
			yield(Salvaged{}, err)
			return
		}
		live, err := db.liveRows(ctx)
		if err != nil {
			yield(Salvaged{}, err)
			return
		}
		m := merger{db: db, finds: finds, yield: yield}
		for r, err := range db.Revisions() {
			if ctx.Err() != nil {
				yield(Salvaged{}, ctx.Err())
				return
			}
			if err != nil {
				if !yield(Salvaged{}, err) {
					return
				}
				continue
			}
			out := Salvaged{Revision: r, Origin: OriginOlder}
			if r.Err == nil && live.has(uint64(r.Offset)) {
				out.Origin = OriginLive
			}
			if out.consistent() && !m.before(r.Rev) || !m.tree(out) {
				return
			}
		}
		m.rest()
	}
}

// liveRows marks the newest record of each live key.
func (db *DB) liveRows(ctx context.Context) (*rowMarks, error) {
	check := &keyCheck{db: db, comp: math.MaxInt64, atRev: true, bound: db.keyBound()}
	b, ok := db.find("key")
	if !ok {
		return check.newResult().keptAtRev, ctx.Err()
	}
	used := newBitmap(db.filePages())
	s, _, err := db.feed(ctx, b, span{}, slices.Clone(used), func() sink { return &partSink{check.pass(keyPart{})} })
	if err != nil {
		return nil, err
	}
	keys, err := check.complete(ctx, s.(*partSink).keyPass, b, span{}, used)
	if err != nil {
		return nil, err
	}
	return keys.keptAtRev, nil
}

// merger merges the records of the tree with those found elsewhere; both come in revision order.
type merger struct {
	db    *DB
	finds []find
	yield func(Salvaged, error) bool
}

// before yields the finds below rev.
func (m *merger) before(rev Rev) bool {
	for len(m.finds) > 0 && m.finds[0].rev.Less(rev) {
		if !m.next() {
			return false
		}
	}
	return true
}

// tree yields a record of the tree and drops finds of the same revision. Only if the record does not decode and a find
// does, it yields both.
func (m *merger) tree(s Salvaged) bool {
	if s.Err != nil && s.Rev == (Rev{}) {
		return m.yield(s, nil)
	}
	if s.Err != nil && len(m.finds) > 0 && m.finds[0].rev == s.Rev && m.finds[0].decodes {
		return m.yield(s, nil) && m.next()
	}
	hash := hashKey(s.Raw)
	for len(m.finds) > 0 && m.finds[0].rev == s.Rev {
		s.count(m.finds[0].hash == hash)
		m.finds = m.finds[1:]
	}
	return m.yield(s, nil)
}

// consistent reports whether bucket key and value of a record have the same revision. A record where they differ may be
// anywhere, so it must not affect the order of the others.
func (s *Salvaged) consistent() bool {
	return s.Err == nil && (s.Tombstone || s.KV.ModRevision == s.Main || len(s.Raw) == 0)
}

func (s *Salvaged) count(same bool) {
	if same {
		s.Copies++
	} else {
		s.Conflicts++
	}
}

func (m *merger) rest() {
	for len(m.finds) > 0 && m.next() {
	}
}

// next yields the first find, after counting all others of its revision.
func (m *merger) next() bool {
	f := m.finds[0]
	s := Salvaged{Origin: f.origin}
	m.finds = m.finds[1:]
	for len(m.finds) > 0 && m.finds[0].rev == f.rev {
		s.count(m.finds[0].hash == f.hash)
		m.finds = m.finds[1:]
	}
	b := make([]byte, f.size)
	if _, err := m.db.f.read(b, f.place.Offset); err != nil {
		return m.yield(Salvaged{}, &DamageError{Place: f.place, Kind: DamageUnreadable, Bucket: "key", Err: err})
	}
	decodeRevision(&s.Revision, f.place, b[:f.keySize], b[f.keySize:])
	return m.yield(s, nil)
}
