package dumpdb

import "fmt"

// firstPass sums what lies above the compact revision and finds the newest record of each key.
type firstPass struct {
	h             *windowHash
	atRev, atComp map[keyHash]newest
	high          sums
	bad           error
}

func newFirstPass(h *windowHash) *firstPass {
	return &firstPass{h: h, atRev: map[keyHash]newest{}, atComp: map[keyHash]newest{}}
}

// firstPortion is a part of the first pass; news is empty when nothing was ever compacted, as then all records count.
type firstPortion struct {
	h    *windowHash
	sums sums
	news []newRecord
	bad  error
}

type newRecord struct {
	key keyHash
	newest
}

func (f *firstPass) newPortion() portion { return &firstPortion{h: f.h} }

func (f *firstPass) merge(p portion) {
	o := p.(*firstPortion)
	if f.bad == nil {
		f.bad = o.bad
	}
	f.high.join(&o.sums)
	for _, n := range o.news {
		f.atRev[n.key] = n.newest
		if n.rev.Main <= f.h.comp {
			f.atComp[n.key] = n.newest
		}
	}
}

func (p *firstPortion) leaf(l *leaf) {
	for _, e := range l.elems {
		rev, tombstone, err := parseRevKey(e.key)
		var kv KeyValue
		if verr := kv.decode(e.value); err == nil {
			err = verr
		}
		if err != nil {
			if p.bad == nil {
				p.bad = &DamageError{Place: l.at(e), Kind: DamageRow, Bucket: "key", Err: fmt.Errorf("%s: %w", showKey(e.key), err)}
			}
			continue
		}
		if p.h.comp >= 0 {
			p.news = append(p.news, newRecord{hashKey(kv.Key), newest{rev, tombstone}})
		}
		if rev.Main > p.h.comp {
			p.sums.row(l, e, tombstone, p.h)
		}
	}
}

// row adds one row to the wanted sums. Key and value stand side by side in the page, so one call hashes both.
func (s *sums) row(l *leaf, e elem, tombstone bool, h *windowHash) {
	row := l.page.data[e.pos : e.pos+len(e.key)+len(e.value)]
	if h.crc {
		s.crc.write(row)
	}
	if h.sha {
		s.sha.record(row, tombstone)
	}
	s.count++
}

// secondPass sums what counts at or below the compact revision. The server keeps what is newest at the hashed revision, the
// content hash what is newest at the compact revision.
type secondPass struct {
	h     *windowHash
	empty bool // no key is live at the revision: the server then skips nothing
	low   sums
}

type secondPortion struct {
	s    *secondPass
	sums sums
}

func (s *secondPass) newPortion() portion { return &secondPortion{s: s} }
func (s *secondPass) merge(p portion)     { s.low.join(&p.(*secondPortion).sums) }

func (p *secondPortion) leaf(l *leaf) {
	h := p.s.h
	for _, e := range l.elems {
		rev, tombstone, err := parseRevKey(e.key)
		if err != nil {
			continue // the first pass has refused the bucket already
		}
		kv, _ := DecodeKeyValue(e.value)
		key := hashKey(kv.Key)
		if h.crc && (p.s.empty || !tombstone && h.atRev[key].rev == rev) && !(tombstone && rev.Main == h.comp) {
			p.sums.crc.write(l.page.data[e.pos : e.pos+len(e.key)+len(e.value)])
		}
		if h.sha && !tombstone && h.atComp[key].rev == rev {
			p.sums.sha.record(l.page.data[e.pos:e.pos+len(e.key)+len(e.value)], false)
			p.sums.count++
		}
	}
}
