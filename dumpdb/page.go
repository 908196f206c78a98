package dumpdb

import (
	"bytes"
	"fmt"
)

// Page types, as the flags field of a page header has them.
const (
	flagBranch   = 1
	flagLeaf     = 2
	flagMeta     = 4
	flagFreelist = 16
	// flagBucket marks a leaf element whose value is a bucket.
	flagBucket = 1
)

func pageType(flags uint16) string {
	switch flags {
	case flagBranch:
		return "branch"
	case flagLeaf:
		return "leaf"
	case flagMeta:
		return "meta"
	case flagFreelist:
		return "freelist"
	}
	return fmt.Sprintf("unknown(0x%x)", flags)
}

// page is one page run in memory. data begins at the header and is cut at the end of the run.
type page struct {
	id       uint64
	off      int64 // of the header in the file
	flags    uint16
	count    int
	overflow uint32
	data     []byte
}

// elem is one element of a branch or leaf page.
type elem struct {
	index      int
	flags      uint32 // leaf only
	child      uint64 // branch only
	pos        int    // of the key in the page run
	key, value []byte
}

func parseHeader(b []byte) page {
	return page{id: le.Uint64(b), flags: le.Uint16(b[8:]), count: int(le.Uint16(b[10:])), overflow: le.Uint32(b[12:]), data: b}
}

// tableProblem is one thing wrong with the element table of a page.
type tableProblem struct {
	kind               DamageKind
	index              int
	expected, observed string
}

// parseElems appends the readable elements of a branch or leaf page to dst. Elements that point outside the page are
// left out and reported, elements out of place (bbolt writes keys and values without gaps) or out of order are kept and reported.
func (p *page) parseElems(dst []elem, problems []tableProblem) ([]elem, []tableProblem) {
	table := headerSize + p.count*elemSize
	n := p.count
	if table > len(p.data) {
		n = (len(p.data) - headerSize) / elemSize
		problems = append(problems, tableProblem{DamagePage, n, fmt.Sprintf("at most %d elements", n), fmt.Sprintf("count %d", p.count)})
		table = headerSize + n*elemSize
	}
	next, gap := table, false
	for i := range n {
		at := headerSize + i*elemSize
		e, end := p.elem(i, at)
		if end < 0 || e.pos < table {
			problems = append(problems, tableProblem{DamagePage, i, fmt.Sprintf("element %d inside the %d bytes of the page", i, len(p.data)), p.describe(at)})
			gap = true
			continue
		}
		if e.pos != next && !gap {
			problems = append(problems, tableProblem{DamagePage, i, fmt.Sprintf("element %d at byte %d", i, next), fmt.Sprintf("byte %d", e.pos)})
		}
		if len(dst) > 0 && bytes.Compare(dst[len(dst)-1].key, e.key) >= 0 {
			problems = append(problems, tableProblem{DamageKeyOrder, i, "key above " + showKey(dst[len(dst)-1].key), showKey(e.key)})
		}
		next, gap = end, false
		dst = append(dst, e)
	}
	return dst, problems
}

// elem decodes element i at byte at; end is -1 when it leaves the page.
func (p *page) elem(i, at int) (e elem, end int) {
	b := p.data[at : at+elemSize]
	var pos, ksize, vsize uint64
	e.index = i
	if p.flags == flagBranch {
		pos, ksize, e.child = uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint64(b[8:])
	} else {
		e.flags, pos, ksize, vsize = le.Uint32(b), uint64(le.Uint32(b[4:])), uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:]))
	}
	start := uint64(at) + pos
	if start+ksize+vsize > uint64(len(p.data)) {
		return e, -1
	}
	e.pos = int(start)
	k, v := start+ksize, start+ksize+vsize
	e.key, e.value = p.data[start:k:k], p.data[k:v:v]
	return e, int(v)
}

func (p *page) describe(at int) string {
	b := p.data[at : at+elemSize]
	if p.flags == flagBranch {
		return fmt.Sprintf("position %d, key size %d", le.Uint32(b), le.Uint32(b[4:]))
	}
	return fmt.Sprintf("position %d, key size %d, value size %d", le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:]))
}

// showKey writes a bucket key for a message: a revision as such, other keys quoted and bounded.
func showKey(k []byte) string {
	if r, tomb, err := parseRevKey(k); err == nil {
		if tomb {
			return r.String() + " (tombstone)"
		}
		return r.String()
	}
	if len(k) > 64 {
		return fmt.Sprintf("%q… (%d bytes)", k[:64], len(k))
	}
	return fmt.Sprintf("%q", k)
}
