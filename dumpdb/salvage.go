package dumpdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
)

// Origin says where a salvaged record was found.
type Origin string

// The origins of a salvaged record.
const (
	// OriginLive is reached through the tree and the newest of its key.
	OriginLive Origin = "live"
	// OriginOlder is reached through the tree, but a tombstone or superseded.
	OriginOlder Origin = "older"
	// OriginFree stands in a page that is not in use: what an earlier transaction left behind.
	OriginFree Origin = "free"
	// OriginUnreachable stands in a damaged page, in a lost page, or in a page not in use while its revision lies in a span
	// that damage took from the tree.
	OriginUnreachable Origin = "unreachable"
)

// Salvaged is one record of bucket key, wherever it was found. Revision.Err tells a value that does not decode; nothing in
// it is guessed.
type Salvaged struct {
	Revision
	Origin Origin
	// Copies counts further finds of this revision with the same bytes, Conflicts those with others.
	Copies, Conflicts int
}

// find is a record outside the tree: where it stands and what tells equal ones apart.
type find struct {
	rev     Rev
	place   Place
	size    int32
	keySize int8
	origin  Origin
	hash    keyHash
	decodes bool
}

// SalvageRevisions yields every record of bucket key that the file holds anywhere, in revision order and once each: from the
// tree, and from damaged, lost and free pages. Damage of the tree is yielded beside, as in Rows. Memory grows with the
// live keys and with the records outside the tree, not with their values.
func (db *DB) SalvageRevisions(ctx context.Context) iter.Seq2[Salvaged, error] {
	return func(yield func(Salvaged, error) bool) {
		finds, err := db.carve(ctx)
		if err != nil {
			yield(Salvaged{}, err)
			return
		}
		newest, err := db.newestLive(ctx)
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
			if live, ok := newest[hashKey(r.KV.Key)]; ok && live == r.Rev {
				out.Origin = OriginLive
			}
			if !m.before(r.Rev) || !m.tree(out) {
				return
			}
		}
		m.rest()
	}
}

// newestLive maps each live key to its newest revision.
func (db *DB) newestLive(ctx context.Context) (map[keyHash]Rev, error) {
	m := map[keyHash]Rev{}
	for r, err := range db.Revisions() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && r.Err == nil {
			newest(m, &record{key: hashKey(r.KV.Key), rev: r.Rev, tombstone: r.Tombstone})
		}
	}
	return m, nil
}

// merger joins the records of the tree with those found elsewhere; both come in revision order.
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

// tree yields a record of the tree and swallows finds of its revision: the tree's is the one that counts.
func (m *merger) tree(s Salvaged) bool {
	if s.Err != nil && s.Rev == (Rev{}) {
		return m.yield(s, nil)
	}
	hash := hashKey(s.Raw)
	for len(m.finds) > 0 && m.finds[0].rev == s.Rev {
		s.count(m.finds[0].hash == hash)
		m.finds = m.finds[1:]
	}
	return m.yield(s, nil)
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

// next yields the first find with all others of its revision counted.
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

// carve finds records of bucket key in every page that the tree does not read whole.
func (db *DB) carve(ctx context.Context) ([]find, error) {
	o, err := db.owners(ctx)
	if err != nil {
		return nil, err
	}
	damaged := map[uint64]bool{}
	for _, d := range o.damage {
		damaged[d.Page] = true
	}
	var finds []find
	for id := uint64(2); id < db.filePages(); id++ {
		if o.of[id] != 0 && !damaged[id] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		finds = db.carvePage(finds, o, id, damaged[id])
	}
	slices.SortFunc(finds, func(a, b find) int {
		return cmp.Or(cmp.Compare(a.rev.Main, b.rev.Main), cmp.Compare(a.rev.Sub, b.rev.Sub), rank(a)-rank(b), cmp.Compare(a.place.Offset, b.place.Offset))
	})
	return finds, nil
}

// rank puts the find to believe first: one that decodes, and one that damage cut from the tree.
func rank(f find) int {
	n := 0
	if !f.decodes {
		n += 2
	}
	if f.origin != OriginUnreachable {
		n++
	}
	return n
}

// errNoRecord tells bytes that hold no record.
var errNoRecord = errors.New("no record of bucket key")

// carvePage finds the records of one page. Only a page that names itself is believed, unless the tree says that it was one.
func (db *DB) carvePage(finds []find, o *owners, id uint64, damaged bool) []find {
	off := db.place(id).Offset
	head := make([]byte, headerSize)
	if _, err := db.f.read(head, off); err != nil {
		return finds
	}
	h := parseHeader(head)
	if !damaged && (h.id != id || h.flags != flagLeaf || h.count == 0) {
		return finds
	}
	data := make([]byte, db.ownRun(o, id, h.overflow)*uint64(db.pageSize))
	n, _ := db.f.read(data, off)
	p := parseHeader(data[:n:n])
	p.off, p.flags = off, flagLeaf
	before := len(finds)
	elems, _ := p.parseElems(nil, nil)
	for _, e := range elems {
		if f, err := p.find(e.pos, len(e.key), len(e.value)); err == nil {
			finds = append(finds, f)
		}
	}
	if len(finds) == before && damaged {
		finds = p.scanBytes(finds)
	}
	for i := range finds[before:] {
		f := &finds[before+i]
		f.place.Page = id
		f.origin = OriginFree
		if damaged || o.lost(db, id, f.rev) {
			f.origin = OriginUnreachable
		}
	}
	return finds
}

// ownRun counts the pages of a run up to the first that is in use or is a page of its own by now. Runs can thus not cover each
// other, which keeps the work linear on any file.
func (db *DB) ownRun(o *owners, id uint64, overflow uint32) uint64 {
	limit := min(uint64(overflow)+1, db.filePages()-id, uint64(maxRun/db.pageSize))
	head := make([]byte, headerSize)
	for n := uint64(1); n < limit; n++ {
		at := id + n
		if _, err := db.f.read(head, db.place(at).Offset); err != nil || o.of[at] != 0 {
			return n
		}
		if h := parseHeader(head); h.id == at && (h.flags == flagLeaf || h.flags == flagBranch || h.flags == flagFreelist) {
			return n
		}
	}
	return limit
}

// lost says whether a record of a page not in use may have been taken from the tree by damage.
func (o *owners) lost(db *DB, id uint64, rev Rev) bool {
	if db.meta.Freelist != noFreelist && !o.free.has(id) && id < db.meta.HighWater {
		return true
	}
	if _, ok := db.find("key"); !ok {
		return len(db.rootDamage) > 0
	}
	key := rev.Bytes()
	return slices.ContainsFunc(o.damage, func(d *DamageError) bool {
		return bytes.Compare(key, d.FirstKey) >= 0 && (d.LastKey == nil || bytes.Compare(key, d.LastKey) < 0)
	})
}

// find reads the record at byte pos.
func (p *page) find(pos, keySize, valueSize int) (find, error) {
	key := p.data[pos : pos+keySize]
	rev, _, err := parseRevKey(key)
	if err != nil {
		return find{}, errNoRecord
	}
	value := p.data[pos+keySize : pos+keySize+valueSize]
	_, err = DecodeKeyValue(value)
	return find{rev: rev, place: Place{Offset: p.off + int64(pos)}, size: int32(keySize + valueSize), keySize: int8(keySize),
		hash: hashKey(value), decodes: err == nil}, nil
}

// scanBytes looks for records in a page whose header or table is gone. Only a put that proves itself counts: a revision key followed by
// a KeyValue that decodes to the start of the next key or the end of what decodes, with the same mod revision.
func (p *page) scanBytes(finds []find) []find {
	for at := headerSize; at+revKeySize < len(p.data); at++ {
		sep := bytes.IndexByte(p.data[at+8:], '_')
		if sep < 0 || at+sep+revKeySize >= len(p.data) {
			return finds
		}
		at += sep
		n, ok := proveRecord(p.data[at:])
		if !ok {
			continue
		}
		if f, err := p.find(at, revKeySize, n); err == nil {
			finds = append(finds, f)
			at += revKeySize + n - 1
		}
	}
	return finds
}

// proveRecord returns the size of the value of a put at the start of b. The fields of a KeyValue ascend on the wire, so the value ends
// where the next one does not.
func proveRecord(b []byte) (size int, ok bool) {
	rev, _, err := parseRevKey(b[:revKeySize])
	if err != nil {
		return 0, false
	}
	rest, last := b[revKeySize:], uint64(0)
	var kv KeyValue
	for len(rest) > 0 {
		f, after, err := nextField(rest)
		if err != nil || f.num <= last || f.num > 6 {
			break
		}
		part := rest[:len(rest)-len(after)]
		if kv.decode(part) != nil {
			break
		}
		last, rest = f.num, after
	}
	ends := len(rest) == 0 || rest[0] == 0 // the next revision key begins with a zero byte
	return len(b) - revKeySize - len(rest), ends && kv.ModRevision == rev.Main && kv.ModRevision > 0 && len(kv.Key) > 0
}
