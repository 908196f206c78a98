package collect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
)

// dbTap finds the consistent index and term of a database in its byte stream, for any order of its pages and with
// little memory.
//
// A snapshot stream cannot be read twice and is kept only in the archive. The meta pages come first and name the root
// page. The page with the index may come before or after the root, and free pages contain older versions of it. So
// dbTap keeps the index of every page that looks like it, by page number. At the end the path from the root shows which
// one is current. (Layout: package dumpdb.)
type dbTap struct {
	size    int // of a page, 0 until the first meta page is read
	page    []byte
	number  uint64
	read    int64
	metas   []tapMeta
	root    []byte // the root page and its overflow
	left    uint64 // overflow pages of the root still to come
	indexes map[uint64]tapIndex
	buckets map[uint64]tapBucket
}

type tapMeta struct{ root, txid uint64 }

// tapIndex is the content of a leaf of bucket meta.
type tapIndex struct{ index, term uint64 }

// tapBucket is where bucket meta is: in a separate page, or inline with these contents.
type tapBucket struct {
	page   uint64
	inline tapIndex
}

const (
	boltMagic    = 0xED0CDAED
	boltHeader   = 16
	boltLeaf     = 2
	boltBranch   = 1
	leafElement  = 16
	branchChild  = 16
	bucketHeader = 16
	// maxPage is the largest page size of bbolt.
	maxPage = 64 << 10
	// maxRootOverflow bounds the size of a root page in memory.
	maxRootOverflow = 64
	// maxTapped bounds the pages in memory: stale copies in free pages look like the real one.
	maxTapped = 1 << 17
)

var errNoIndex = errors.New("the consistent index of the database was not found")

// Write processes the next bytes of the database. It never fails; Result returns the errors.
func (t *dbTap) Write(b []byte) (int, error) {
	n := len(b)
	t.read += int64(n)
	if t.size == 0 {
		t.page = append(t.page, b...)
		if len(t.page) < boltHeader+64 {
			return n, nil
		}
		t.begin()
		b, t.page = t.page, nil
	}
	for len(b) > 0 {
		take := min(t.size-len(t.page), len(b))
		if len(t.page) == 0 && take == t.size {
			t.usePage(b[:take])
		} else if t.page = append(t.page, b[:take]...); len(t.page) == t.size {
			t.usePage(t.page)
			t.page = t.page[:0]
		}
		b = b[take:]
	}
	return n, nil
}

// begin reads the page size from the first meta page. If that page is damaged, it assumes the usual size.
func (t *dbTap) begin() {
	t.indexes, t.buckets = map[uint64]tapIndex{}, map[uint64]tapBucket{}
	t.size = 4096
	if s := le.Uint32(t.page[boltHeader+8:]); le.Uint32(t.page[boltHeader:]) == boltMagic && s >= 512 && s <= maxPage &&
		s&(s-1) == 0 {
		t.size = int(s)
	}
}

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// usePage processes one complete page.
func (t *dbTap) usePage(p []byte) {
	number := t.number
	t.number++
	if number < 2 {
		t.meta(p[boltHeader:])
		return
	}
	root, ok := t.rootPage()
	if ok && number == root {
		t.root, t.left = slices.Clone(p), min(uint64(le.Uint32(p[12:])), maxRootOverflow)
		return
	}
	if t.left > 0 && number > root {
		t.root = append(t.root, p...)
		t.left--
		return
	}
	if le.Uint64(p) != number || le.Uint16(p[8:]) != boltLeaf {
		return
	}
	t.leaf(number, p)
}

// leaf keeps a page that may be needed later.
func (t *dbTap) leaf(number uint64, p []byte) {
	if i, ok := indexIn(p); ok {
		if len(t.indexes) >= maxTapped {
			t.prune()
		}
		t.indexes[number] = i
	}
	if b, ok := bucketIn(p); ok && len(t.buckets) < maxTapped {
		t.buckets[number] = b
	}
}

// prune drops the lower half of the indexes: stale pages have lower ones.
func (t *dbTap) prune() {
	all := make([]uint64, 0, len(t.indexes))
	for _, v := range t.indexes {
		all = append(all, v.index)
	}
	slices.Sort(all)
	half := all[len(all)/2]
	for k, v := range t.indexes {
		if v.index < half {
			delete(t.indexes, k)
		}
	}
	if len(t.indexes) >= maxTapped { // all equal
		clear(t.indexes)
	}
}

func (t *dbTap) meta(b []byte) {
	if m, ok := parseMeta(b); ok {
		t.metas = append(t.metas, m)
	}
}

// parseMeta reads a meta page after its header.
func parseMeta(b []byte) (m tapMeta, ok bool) {
	if len(b) < 64 || le.Uint32(b) != boltMagic {
		return m, false
	}
	h := fnv.New64a()
	_, _ = h.Write(b[:56])
	if h.Sum64() != le.Uint64(b[56:]) {
		return m, false
	}
	return tapMeta{root: le.Uint64(b[16:]), txid: le.Uint64(b[48:])}, true
}

func (t *dbTap) rootPage() (root uint64, ok bool) {
	var tx uint64
	for _, m := range t.metas {
		if !ok || m.txid > tx {
			root, tx, ok = m.root, m.txid, true
		}
	}
	return root, ok
}

// Result returns the consistent index and term (0 before 3.5) of the database.
func (t *dbTap) Result() (index, term uint64, err error) {
	if len(t.root) < boltHeader {
		return 0, 0, fmt.Errorf("%w: its root page is missing", errNoIndex)
	}
	b, ok := t.find()
	if !ok {
		return 0, 0, fmt.Errorf("%w: bucket meta is not below its root page", errNoIndex)
	}
	i := b.inline
	if b.page != 0 {
		if i, ok = t.indexes[b.page]; !ok {
			return 0, 0, fmt.Errorf("%w: page %d is not a leaf of bucket meta", errNoIndex, b.page)
		}
	}
	return i.index, i.term, nil
}

// find follows the root page to bucket meta.
func (t *dbTap) find() (tapBucket, bool) {
	if le.Uint16(t.root[8:]) == boltLeaf {
		return bucketIn(t.root)
	}
	if le.Uint16(t.root[8:]) != boltBranch {
		return tapBucket{}, false
	}
	for i := range int(le.Uint16(t.root[10:])) {
		at := boltHeader + i*branchChild
		if at+branchChild > len(t.root) {
			break
		}
		if b, ok := t.buckets[le.Uint64(t.root[at+8:])]; ok {
			return b, true
		}
	}
	return tapBucket{}, false
}

// element returns the value of a key in a leaf page.
func element(p []byte, name string, flags uint32) ([]byte, bool) {
	for i := range int(le.Uint16(p[10:])) {
		at := boltHeader + i*leafElement
		if at+leafElement > len(p) {
			return nil, false
		}
		e := p[at:]
		pos, ks, vs := int64(le.Uint32(e[4:])), int64(le.Uint32(e[8:])), int64(le.Uint32(e[12:]))
		if ks != int64(len(name)) || le.Uint32(e) != flags || pos+ks+vs > int64(len(e)) {
			continue
		}
		if string(e[pos:pos+ks]) == name {
			return e[pos+ks : pos+ks+vs], true
		}
	}
	return nil, false
}

func indexIn(p []byte) (i tapIndex, ok bool) {
	v, ok := element(p, "consistent_index", 0)
	if !ok || len(v) != 8 {
		return i, false
	}
	i.index = be.Uint64(v)
	if v, ok := element(p, "term", 0); ok && len(v) == 8 {
		i.term = be.Uint64(v)
	}
	return i, true
}

func bucketIn(p []byte) (b tapBucket, ok bool) {
	v, ok := element(p, "meta", 1)
	if !ok || len(v) < bucketHeader {
		return b, false
	}
	if b.page = le.Uint64(v); b.page != 0 {
		return b, true
	}
	if len(v) < bucketHeader+boltHeader {
		return b, false
	}
	b.inline, ok = indexIn(v[bucketHeader:])
	return b, ok
}
