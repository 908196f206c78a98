package dumpdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
)

// freePageScan finds records of bucket key in pages that the tree does not read completely.
type freePageScan struct {
	db     *DB
	owners *owners
	finds  []find
}

// scanFreePages finds records of bucket key in every page that the tree does not read completely.
func (db *DB) scanFreePages(ctx context.Context) ([]find, error) {
	o, err := db.owners(ctx)
	if err != nil {
		return nil, err
	}
	fs := freePageScan{db: db, owners: o}
	damaged := map[uint64]bool{}
	for _, d := range o.damage {
		damaged[d.Page] = true
	}
	for id := uint64(2); id < db.filePages(); id++ {
		if o.of[id] != 0 && !damaged[id] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fs.page(id, damaged[id])
	}
	slices.SortFunc(fs.finds, func(a, b find) int {
		return cmp.Or(cmp.Compare(a.rev.Main, b.rev.Main), cmp.Compare(a.rev.Sub, b.rev.Sub), rank(a)-rank(b),
			cmp.Compare(a.place.Offset, b.place.Offset))
	})
	return fs.finds, nil
}

// rank orders finds of one revision: first one that decodes, then one that damage has cut from the tree.
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

// errNoRecord means that the bytes are not a record.
var errNoRecord = errors.New("not a record of bucket key")

// page finds the records of one page. The page header must have the page's own id, unless the tree refers to the page.
func (fs *freePageScan) page(id uint64, damaged bool) {
	db, o := fs.db, fs.owners
	off := db.place(id).Offset
	head := make([]byte, headerSize)
	if _, err := db.f.read(head, off); err != nil {
		return
	}
	h := parseHeader(head)
	if !damaged && (h.id != id || h.flags != flagLeaf || h.count == 0) {
		return
	}
	data := make([]byte, fs.ownRun(id, h.overflow)*uint64(db.pageSize))
	n, _ := db.f.read(data, off)
	if n < headerSize { // the file was cut since its header was read
		return
	}
	p := parseHeader(data[:n:n])
	p.off, p.flags = off, flagLeaf
	before := len(fs.finds)
	elems, _ := p.parseElems(nil, nil)
	known := map[int]bool{}
	for _, e := range elems {
		// The tree yields the readable rows of a page that it reaches.
		if f, err := p.find(e.pos, len(e.key), len(e.value)); err == nil && o.of[id] == 0 {
			fs.finds = append(fs.finds, f)
		}
		known[e.pos] = true
	}
	if damaged {
		fs.finds = p.scanBytes(fs.finds, known)
	}
	for i := range fs.finds[before:] {
		f := &fs.finds[before+i]
		f.place.Page = id
		f.origin = OriginFree
		if damaged || o.lost(db, id, f.rev) {
			f.origin = OriginUnreachable
		}
	}
}

// ownRun counts the pages of a run up to the first that is in use or that starts another page. So runs cannot overlap,
// which keeps the work linear for any file.
func (fs *freePageScan) ownRun(id uint64, overflow uint32) uint64 {
	db, o := fs.db, fs.owners
	limit := min(uint64(overflow)+1, db.filePages()-id, uint64(maxRun/db.pageSize))
	head := make([]byte, headerSize)
	for n := uint64(1); n < limit; n++ {
		at := id + n
		if _, err := db.f.read(head, db.place(at).Offset); err != nil || o.of[at] != 0 {
			return n
		}
		if h := parseHeader(head); h.id == at &&
			(h.flags == flagLeaf || h.flags == flagBranch || h.flags == flagFreelist) {
			return n
		}
	}
	return limit
}

// lost reports whether damage may have removed a record of an unused page from the tree.
func (o *owners) lost(db *DB, id uint64, rev Rev) bool {
	if db.meta.Freelist != noFreelist && !o.free.has(id) && id < db.meta.HighWater {
		return true
	}
	if _, ok := db.find("key"); !ok {
		return len(db.rootDamage) > 0
	}
	key := rev.Bytes()
	return slices.ContainsFunc(o.damage, func(d *DamageError) bool { return d.covers(key) })
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
	return find{rev: rev, place: Place{Offset: p.off + int64(pos)}, size: int32(keySize + valueSize),
		keySize: int8(keySize),
		hash:    hashKey(value), decodes: err == nil}, nil
}

// scanBytes looks for further records in a page with a bad header or table. known are the positions from the table. It
// accepts only a put that can be verified. A revision key must be followed by a KeyValue with the same mod revision,
// which ends at the next key or at the end of the page.
func (p *page) scanBytes(finds []find, known map[int]bool) []find {
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
		if f, err := p.find(at, revKeySize, n); err == nil && !known[at] {
			finds = append(finds, f)
		}
		at += revKeySize + n - 1
	}
	return finds
}

// proveRecord returns the size of the value of a put at the start of b. The fields of a KeyValue ascend, so the value
// ends before the first field that does not.
func proveRecord(b []byte) (size int, ok bool) {
	rev, _, err := parseRevKey(b[:revKeySize])
	if err != nil {
		return 0, false
	}
	rest, last := b[revKeySize:], int32(0)
	var kv KeyValue
	var f field
	for len(rest) > 0 {
		after, err := nextField(rest, &f)
		if err != nil || f.Num <= last || f.Num > 6 {
			break
		}
		if kv.decode(f.Raw) != nil {
			break
		}
		last, rest = f.Num, after
	}
	ends := len(rest) == 0 || rest[0] == 0 // the next revision key begins with a zero byte
	return len(b) - revKeySize - len(rest), ends && kv.ModRevision == rev.Main && kv.ModRevision > 0 && len(kv.Key) > 0
}
