package dumpdb

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/etcd-medic/etcd-medic/internal/memory"
)

// maxLiveKeys is how many keys one pass over bucket key keeps. A bucket with more is read again, for a part of its keys
// at a time, so that memory does not grow with their number. Two passes may run at once.
const maxLiveKeys = 3 << 20

// keyPart selects the keys of a pass: those whose hash ends with the bits of part, as far as mask goes.
type keyPart struct{ mask, part uint64 }

// keyCheck is what is asked of the keys of a bucket.
type keyCheck struct {
	db *DB
	// comp is the compact revision; below 0 without compaction.
	comp int64
	// chains asks for the MVCC invariants, atRev and atComp for the newest record of each key at the last revision of
	// the pass and at comp.
	chains, atRev, atComp bool
	leases                map[int64]struct{}
	// leasesKnown is false if bucket lease could not be read completely.
	leasesKnown bool
	// bound is how many keys a pass keeps.
	bound int
}

// keyResult is what the passes over all keys found.
type keyResult struct {
	live                      int64
	chains                    violations
	leases                    violations
	superseded, strays        int64
	firstSuperseded, supersed Rev // supersed is the record that superseded the first one
	firstStray                Rev
	// keptAtRev and keptAtComp mark the records at or below comp that are the newest of their key at the last revision
	// and at comp.
	keptAtRev, keptAtComp *rowMarks
}

// keyPass reads the records of a bucket in order and follows each key of its part.
type keyPass struct {
	*keyCheck
	keyPart
	live liveKeys
	// old has for each key with a record at or below comp the newest of these, if a later one replaced it.
	old   liveKeys
	order revOrder
	// full is true if there were more keys than bound. Then the pass has no result: it follows only some of its keys,
	// to count how many there are at a time. most is how many of those it has kept at once.
	full bool
	most int
	res  keyResult
}

// liveKeyBytes is what a pass keeps of a key that has records at and above the compact revision, with its places in
// tables.
const liveKeyBytes = 128

// keyBound returns how many keys a pass over bucket key keeps.
func (db *DB) keyBound() int { return cmp.Or(db.maxKeys, memory.KeyTable(maxLiveKeys, liveKeyBytes)) }

func (c *keyCheck) pass(p keyPart) *keyPass {
	return &keyPass{keyCheck: c, keyPart: p, order: newRevOrder(c.comp)}
}

// revOrder follows the revisions of a bucket, which are contiguous above the compact revision: the main revisions, and
// the subs within one, which start at 0.
type revOrder struct {
	comp int64
	prev Rev
	// gap is the main revision after the last missing one above the compact revision. Records before it to which a
	// later record refers may be lost.
	gap int64
}

func newRevOrder(comp int64) revOrder {
	return revOrder{comp: comp, prev: Rev{Main: max(comp, 1), Sub: -1}}
}

// next takes the next record and returns the revision that it should have.
func (o *revOrder) next(rev Rev) (want Rev, ok bool) {
	prev := o.prev
	o.prev = rev
	if rev.Main <= o.comp {
		return rev, true
	}
	want = Rev{Main: prev.Main, Sub: prev.Sub + 1}
	if rev.Main != prev.Main || prev.Main <= o.comp {
		want = Rev{Main: max(prev.Main, o.comp) + 1}
	}
	if rev != want {
		o.gap = rev.Main
	}
	return want, rev == want
}

func liveKeyOf(r *record, pageSize int) liveKey {
	at := uint64(r.place.Offset)
	return liveKey{main: r.rev.Main, create: r.create, version: r.version, where: at,
		back: uint32(at/uint64(pageSize) - r.place.Page)}
}

// record takes the next record of the bucket.
func (p *keyPass) record(r *record) {
	p.order.next(r.rev)
	if r.key[1]&p.mask != p.part || !p.chains && (p.comp < 0 || !p.atRev && r.rev.Main > p.comp) {
		return
	}
	switch {
	case p.full:
		p.count(r)
	case r.tombstone:
		p.death(r)
	default:
		p.life(r)
	}
	if p.live.used+p.old.used > p.bound {
		p.sample()
	}
	p.most = max(p.most, p.live.used+p.old.used)
}

// sampleBits is how many bits of the hash say which keys are counted.
const sampleBits = 6

// sample gives the result of the pass up, to count some of its keys from here on. Keys that no more bits tell apart are
// not counted.
func (p *keyPass) sample() {
	p.full, p.most, p.res = true, 0, keyResult{}
	if bits.OnesCount64(p.mask) > 64-sampleBits {
		p.live, p.old = liveKeys{}, liveKeys{}
		return
	}
	p.mask = p.mask<<sampleBits | (1<<sampleBits - 1)
	p.live, p.old = p.live.part(p.keyPart), p.old.part(p.keyPart)
}

// count follows a key as far as it is counted.
func (p *keyPass) count(r *record) {
	var before liveKey
	var known bool
	if r.tombstone {
		before, known = p.live.remove(r.key)
	} else {
		before, known = p.live.put(r.key, liveKeyOf(r, p.db.pageSize))
	}
	if known {
		p.replaced(r, &before)
	}
}

// parts returns into how many bits of the hash the keys of a pass have to be divided, so that each part has fewer than
// so many keys: about a sixteenth less, since the parts are not of one size.
func (p *keyPass) parts(bound int) (n int) {
	all := float64(p.most) * math.Exp2(float64(bits.OnesCount64(p.mask)))
	for n < maxPartBits && all > float64(bound)/16*15 {
		all /= 2
		n++
	}
	return n
}

// maxPartBits bounds the parts that are planned at once. One that is too large is divided again.
const maxPartBits = 12

// replaced keeps the newest record of a key at or below the compact revision when a later one replaces it.
func (p *keyPass) replaced(r *record, before *liveKey) {
	if p.atComp && r.rev.Main > p.comp && before.main <= p.comp {
		p.old.put(r.key, *before)
	}
}

// life follows a put. Its version continues the previous one since the key was created, its create revision is
// unchanged.
func (p *keyPass) life(r *record) {
	now := liveKeyOf(r, p.db.pageSize)
	if _, ok := p.leases[r.lease]; r.lease != 0 && !ok && p.leasesKnown {
		now.where |= leaseMissing
	}
	before, known := p.live.put(r.key, now)
	if known {
		p.replaced(r, &before)
	}
	if !p.chains {
		return
	}
	if known {
		p.superseded(r, &before)
	}
	switch gap := p.order.gap; {
	case r.empty:
	case known && r.rev.Main > p.comp && before.main >= gap:
		if r.version != before.version+1 {
			p.violate(r, "version-chain", fmt.Sprintf("version %d after %s", before.version+1, p.cited(&before)),
				fmt.Sprintf("version %d", r.version))
		} else if r.create != before.create {
			p.violate(r, "create-revision",
				fmt.Sprintf("create revision %d as in %s", before.create, p.cited(&before)),
				strconv.FormatInt(r.create, 10))
		}
	case known && r.create == before.create && r.version <= before.version:
		p.violate(r, "version-chain", fmt.Sprintf("a version above %d", before.version),
			fmt.Sprintf("version %d", r.version))
	case !known && r.rev.Main > p.comp && gap == 0 && r.version != 1:
		p.violate(r, "version-chain", "version 1, since the key has no earlier record",
			fmt.Sprintf("version %d", r.version))
	}
}

// death follows a tombstone, whose key must be live.
func (p *keyPass) death(r *record) {
	before, known := p.live.remove(r.key)
	if known {
		p.replaced(r, &before)
	}
	if !p.chains {
		return
	}
	switch {
	case known:
		p.superseded(r, nil)
	case r.rev.Main < p.comp:
		if p.res.strays++; p.res.firstStray == (Rev{}) {
			p.res.firstStray = r.rev
		}
	}
	if !known && r.rev.Main > p.comp && p.order.gap == 0 {
		p.violate(r, "tombstone-without-life", "a live key", "no record of the key before")
	}
}

// superseded counts a record at or below the compact revision that another one there replaced: a compaction removes it.
// The first one is before, or the tombstone that replaced it.
func (p *keyPass) superseded(by *record, before *liveKey) {
	if by.rev.Main > p.comp {
		return
	}
	if p.res.superseded++; p.res.supersed != (Rev{}) {
		return
	}
	p.res.supersed, p.res.firstSuperseded = by.rev, by.rev
	if before != nil {
		p.res.firstSuperseded = p.rev(before)
	}
}

func (p *keyPass) violate(r *record, rule, expected, observed string) {
	p.res.chains.addOf(p.db, Violation{Place: r.place, Rev: r.rev, Rule: rule, Expected: expected, Observed: observed})
}

// cited returns the revision of an earlier record for a violation. It is read again only for a violation that is kept:
// in a bucket where each record violates a rule, that would read a page for each record.
func (p *keyPass) cited(k *liveKey) Rev {
	if len(p.res.chains.list) >= maxViolations {
		return Rev{Main: k.main}
	}
	return p.rev(k)
}

// rev reads the revision of a record again, of which only the main one was kept.
func (p *keyPass) rev(k *liveKey) Rev {
	if r, err := p.db.recordOf(k); err == nil {
		return r.Rev
	}
	return Rev{Main: k.main}
}

func (db *DB) recordOf(k *liveKey) (Revision, error) {
	rd := recordReader{db: db, r: db.reader()}
	return rd.at(k.place(db.pageSize))
}

// finish adds what the pass found to the result of all passes.
func (p *keyPass) finish(to *keyResult) {
	missing := smallestKeys{}
	p.live.all(func(k *liveKey) {
		if p.chains && k.where&leaseMissing != 0 {
			missing.add(k)
		}
		if k.main <= p.comp {
			if p.atRev {
				to.keptAtRev.set(k.where &^ leaseMissing)
			}
			if p.atComp {
				to.keptAtComp.set(k.where &^ leaseMissing)
			}
		}
	})
	p.old.all(func(k *liveKey) { to.keptAtComp.set(k.where &^ leaseMissing) })
	to.live += int64(p.live.used)
	p.leaseless(&missing, &to.leases)
	to.chains.join(&p.res.chains)
	to.superseded += p.res.superseded
	to.strays += p.res.strays
	if s := p.res.supersed; s != (Rev{}) && (to.supersed == (Rev{}) || s.Less(to.supersed)) {
		to.supersed, to.firstSuperseded = s, p.res.firstSuperseded
	}
	if s := p.res.firstStray; s != (Rev{}) && (to.firstStray == (Rev{}) || s.Less(to.firstStray)) {
		to.firstStray = s
	}
}

// leaseless adds the keys whose lease does not exist.
func (p *keyPass) leaseless(missing *smallestKeys, to *violations) {
	var found violations
	for _, k := range missing.sort() {
		v := Violation{Place: k.place(p.db.pageSize), Rev: Rev{Main: k.main}, Rule: RuleLease, Observed: "none"}
		if r, err := p.db.recordOf(&k); err == nil {
			v.Rev, v.Key, v.Lease = r.Rev, slices.Clone(r.KV.Key), r.KV.Lease
		}
		v.Expected = "lease " + ID(v.Lease).String() + " in bucket lease"
		found.add(v)
	}
	found.more = missing.more
	to.join(&found)
}

// smallestKeys keeps the first maxViolations keys by revision and counts the others.
type smallestKeys struct {
	kept []liveKey
	more int64
}

func (s *smallestKeys) add(k *liveKey) {
	if s.kept = append(s.kept, *k); len(s.kept) >= 2*maxViolations {
		s.sort()
	}
}

func (s *smallestKeys) sort() []liveKey {
	slices.SortFunc(s.kept, func(a, b liveKey) int {
		return cmp.Or(cmp.Compare(a.main, b.main), cmp.Compare(a.where, b.where))
	})
	if n := len(s.kept); n > maxViolations {
		s.more += int64(n - maxViolations)
		s.kept = s.kept[:maxViolations]
	}
	return s.kept
}

// newResult returns the empty result of a check.
func (c *keyCheck) newResult() *keyResult {
	return &keyResult{keptAtRev: newRowMarks(c.db.f.size), keptAtComp: newRowMarks(c.db.f.size)}
}

// complete returns the result of a first pass over all keys. If these were too many, it reads the bucket again, for as
// many keys at a time as there is room for. used are the pages marked before the first pass.
func (c *keyCheck) complete(ctx context.Context, first *keyPass, b *bucket, want span, used bitmap) (*keyResult,
	error) {
	res := c.newResult()
	if !first.full {
		first.finish(res)
		return res, nil
	}
	var todo []keyPart
	mask := uint64(1)<<max(first.parts(c.bound), 1) - 1
	for part := range mask + 1 {
		todo = append(todo, keyPart{mask, part})
	}
	for len(todo) > 0 {
		part := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		s, _, err := c.db.feed(ctx, b, want, slices.Clone(used), func() sink { return &partSink{c.pass(part)} })
		if err != nil {
			return nil, err
		}
		p := s.(*partSink).keyPass
		if !p.full {
			p.finish(res)
			continue
		}
		more := part.mask<<1 | 1
		if part.mask == more {
			return nil, fmt.Errorf("more than %d keys of one hash", c.bound)
		}
		todo = append(todo, keyPart{more, part.part}, keyPart{more, part.part | (part.mask + 1)})
	}
	return res, nil
}

// partSink is a pass over a part of the keys.
type partSink struct{ *keyPass }

func (s *partSink) newPortion() portion { return portions.Get().(*keyPortion).reset(nil) }

func (s *partSink) merge(p portion) {
	o := p.(*keyPortion)
	for i := range o.recs {
		s.record(&o.recs[i])
	}
	portions.Put(o)
}

// rowMarks marks rows of bucket key by where they are in the file. A row with a revision is longer than 16 bytes, so no
// two of them begin within the same 16.
type rowMarks struct{ chunks []*[1 << 13]uint64 }

const (
	rowGrain  = 16
	markChunk = rowGrain << (13 + 6) // bytes of the file
)

func newRowMarks(size int64) *rowMarks {
	return &rowMarks{chunks: make([]*[1 << 13]uint64, size/markChunk+1)}
}

// set marks a row. It must not be called concurrently.
func (m *rowMarks) set(offset uint64) {
	c := offset / markChunk
	if c >= uint64(len(m.chunks)) {
		return
	}
	if m.chunks[c] == nil {
		m.chunks[c] = new([1 << 13]uint64)
	}
	bit := offset % markChunk / rowGrain
	m.chunks[c][bit/64] |= 1 << (bit % 64)
}

func (m *rowMarks) has(offset uint64) bool {
	c := offset / markChunk
	if c >= uint64(len(m.chunks)) || m.chunks[c] == nil {
		return false
	}
	bit := offset % markChunk / rowGrain
	return m.chunks[c][bit/64]&(1<<(bit%64)) != 0
}

// violations keeps the first maxViolations by revision and counts the others.
type violations struct {
	list []Violation
	more int64
}

// add keeps a violation in the order of the bucket.
func (v *violations) add(o Violation) {
	if len(v.list) >= maxViolations {
		v.more++
		return
	}
	v.list = append(v.list, o)
}

// addOf adds a violation of a record and fetches its key, of which only the hash was kept.
func (v *violations) addOf(db *DB, o Violation) {
	if len(v.list) < maxViolations {
		o.Key = db.keyAt(o.Place)
	}
	v.add(o)
}

func (v *violations) join(o *violations) {
	v.list = append(v.list, o.list...)
	v.more += o.more
	v.sort()
	if n := len(v.list); n > maxViolations {
		v.more += int64(n - maxViolations)
		v.list = slices.Clone(v.list[:maxViolations])
	}
}

func (v *violations) sort() {
	slices.SortStableFunc(v.list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Main, b.Main), cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Offset, b.Offset),
			cmp.Compare(a.Rule, b.Rule))
	})
}
