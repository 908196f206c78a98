package dumpdb

import (
	"errors"
	"sync"
)

// keySink is one pass over bucket key: the MVCC invariants, the first pass of the hashes, or both.
type keySink struct {
	stats  *statsSink
	hash   *windowHash
	keys   *keyPass
	nested nestedBuckets
}

// keyPortion is a part of that pass.
type keyPortion struct {
	nestedPortion
	records
	h    *windowHash
	sums sums
}

// portions keeps the buffers of merged portions for the next ones.
var portions = sync.Pool{New: func() any { return new(keyPortion) }}

func (s *keySink) newPortion() portion {
	return portions.Get().(*keyPortion).reset(s.hash)
}

// reset empties a portion and says which sums are wanted, if any.
func (p *keyPortion) reset(h *windowHash) *keyPortion {
	p.records = records{recs: p.recs[:0]}
	p.nestedBuckets, p.sums, p.h = nestedBuckets{}, sums{}, h
	return p
}

func (s *keySink) merge(p portion) {
	o := p.(*keyPortion)
	s.nested.join(&o.nestedBuckets)
	if s.stats != nil {
		s.stats.mergeRecords(&o.records)
	}
	if h := s.hash; h != nil {
		if len(o.bad) > 0 && h.bad == nil {
			v := o.bad[0]
			h.bad = &DamageError{Place: v.Place, Kind: DamageRow, Bucket: "key", Err: errors.New(v.Observed)}
		}
		h.high.join(&o.sums)
	}
	for i := range o.recs {
		if i%warmed == 0 {
			s.keys.live.warm(o.recs[i:])
		}
		s.keys.record(&o.recs[i])
	}
	o.h = nil
	portions.Put(o)
}

func (p *keyPortion) leaf(l *leaf) {
	for _, e := range l.elems {
		if e.flags&flagBucket != 0 {
			p.nestedBuckets.add(l, e)
		}
		r, ok := p.records.add(l, e)
		if ok && p.h != nil && r.rev.Main > p.h.comp {
			p.sums.row(l, e, r.tombstone, p.h)
		}
	}
}

// row adds one row to the wanted sums. Key and value are adjacent in the page, so one call hashes both.
func (s *sums) row(l *leaf, e elem, tombstone bool, h *windowHash) {
	row := l.raw(e)
	if h.crc {
		s.crc.write(row)
	}
	if h.set {
		s.set.record(row, tombstone)
	}
	s.count++
}

// raw returns key and value of an element as stored in the page.
func (l *leaf) raw(e elem) []byte { return l.page.data[e.pos : e.pos+len(e.key)+len(e.value)] }

// secondPass sums what counts at or below the compact revision. The server keeps the newest records at the hashed
// revision, the content hash the newest ones at the compact revision.
type secondPass struct {
	h         *windowHash
	low, rest sums
}

type secondPortion struct {
	h          *windowHash
	sums, rest sums
}

func (s *secondPass) newPortion() portion { return &secondPortion{h: s.h} }

func (s *secondPass) merge(p portion) {
	o := p.(*secondPortion)
	s.low.join(&o.sums)
	s.rest.join(&o.rest)
}

func (p *secondPortion) leaf(l *leaf) {
	for _, e := range l.elems {
		rev, tombstone, err := parseRevKey(e.key)
		if err != nil {
			continue // the first pass has already refused the bucket
		}
		at := uint64(l.at(e).Offset)
		if p.h.crc && p.h.serverCounts(at, rev, tombstone) {
			p.sums.crc.write(l.raw(e))
		}
		if !p.h.set {
			continue
		}
		to := &p.rest
		if p.h.keys.keptAtComp.has(at) {
			to = &p.sums
		}
		to.set.record(l.raw(e), tombstone)
		to.count++
	}
}

// serverCounts reports whether the server hashes the record at an offset, at or below the compact revision. If there is
// no live key at all, it hashes all of them except the tombstone at the compact revision.
func (h *windowHash) serverCounts(at uint64, rev Rev, tombstone bool) bool {
	if tombstone && rev.Main == h.comp {
		return false
	}
	return h.keys.keptAtRev.has(at) || h.keys.live == 0
}
