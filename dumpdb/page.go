package dumpdb

import (
	"bytes"
	"fmt"
)

// Page types, as in the flags field of a page header.
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

// page is one page run in memory. data starts at the header and ends with the run.
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
	return page{id: le.Uint64(b), flags: le.Uint16(b[8:]), count: int(le.Uint16(b[10:])), overflow: le.Uint32(b[12:]),
		data: b}
}

// tableProblem is one error in the element table of a page.
type tableProblem struct {
	kind               DamageKind
	index              int
	expected, observed string
}

// parseElems appends the readable elements of a branch or leaf page to dst. It leaves out and reports elements that
// point outside the page. It keeps and reports elements out of order or out of place: bbolt writes keys and values
// without gaps.
func (p *page) parseElems(dst []elem, problems []tableProblem) ([]elem, []tableProblem) {
	n, problems := p.elemCount(problems)
	table := headerSize + n*elemSize
	next, lost := table, -1
	for i := range n {
		at := headerSize + i*elemSize
		e, end := p.elem(i, at)
		if end < 0 || e.pos < table {
			if lost < 0 {
				lost = i
			}
			continue
		}
		if lost >= 0 {
			problems = append(problems, p.lostElems(lost, i))
		} else if e.pos != next {
			problems = append(problems, tableProblem{DamagePage, i, fmt.Sprintf("element %d at byte %d", i, next),
				fmt.Sprintf("byte %d", e.pos)})
		}
		if e.flags > flagBucket {
			problems = append(problems, tableProblem{DamagePage, i,
				fmt.Sprintf("flags 0 or %d of element %d", flagBucket, i), fmt.Sprintf("%#x", e.flags)})
		}
		if len(dst) > 0 && bytes.Compare(dst[len(dst)-1].key, e.key) >= 0 {
			problems = append(problems, tableProblem{DamageKeyOrder, i, "key above " + showKey(dst[len(dst)-1].key),
				showKey(e.key)})
		}
		next, lost = end, -1
		dst = append(dst, e)
	}
	switch own := len(p.data) / (int(p.overflow) + 1); {
	case lost >= 0:
		problems = append(problems, p.lostElems(lost, n))
	case n > 0 && p.overflow > 0 && next < own*int(p.overflow):
		// bbolt gives a page only as many overflow pages as its rows need.
		problems = append(problems, tableProblem{DamagePage, n,
			fmt.Sprintf("rows on all of its %d pages", p.overflow+1), fmt.Sprintf("rows that end at byte %d", next)})
	case n > 0 && len(problems) == 0 && !onlyZeros(p.data[next:]):
		// bbolt zeroes a page before it writes rows to it (Tx.write), so these bytes are of the last row.
		problems = append(problems, tableProblem{DamagePage, n - 1,
			fmt.Sprintf("zeros after element %d, from byte %d", n-1, next), "other bytes"})
	}
	return dst, problems
}

// onlyZeros compares b with itself, moved by one byte: so it is done by words.
func onlyZeros(b []byte) bool { return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1]) }

// elemCount returns the number of elements. Keys start right after the table, so the position of the first key also
// shows the number. If the header says otherwise and that many elements fit without a gap, the header is wrong.
func (p *page) elemCount(problems []tableProblem) (int, []tableProblem) {
	n, room := p.count, (len(p.data)-headerSize)/elemSize
	if room > 0 && n > 0 {
		first, end := p.elem(0, headerSize)
		if told := (first.pos - headerSize) / elemSize; end >= 0 && first.pos != headerSize+n*elemSize && p.fits(told) {
			observed := fmt.Sprintf("count %d", n)
			return told, append(problems, tableProblem{DamagePage, min(n, told),
				fmt.Sprintf("count %d, since the first key follows %d elements", told, told), observed})
		}
	}
	if n > room {
		problems = append(problems, tableProblem{DamagePage, room, fmt.Sprintf("at most %d elements", room),
			fmt.Sprintf("count %d", n)})
		n = room
	}
	return n, problems
}

// fits reports whether n elements follow their table without gaps.
func (p *page) fits(n int) bool {
	next := headerSize + n*elemSize
	for i := range n {
		e, end := p.elem(i, headerSize+i*elemSize)
		if end < 0 || e.pos != next {
			return false
		}
		next = end
	}
	return n > 0
}

// lostElems describes elements from up to but not including end.
func (p *page) lostElems(from, end int) tableProblem {
	name := fmt.Sprintf("element %d", from)
	if end-from > 1 {
		name = fmt.Sprintf("elements %d to %d", from, end-1)
	}
	return tableProblem{DamagePage, from, fmt.Sprintf("%s inside the %d bytes of the page", name, len(p.data)),
		p.describe(headerSize + from*elemSize)}
}

// elem decodes element i at byte at. end is -1 if it points outside the page.
func (p *page) elem(i, at int) (e elem, end int) {
	b := p.data[at : at+elemSize]
	var pos, ksize, vsize uint64
	e.index = i
	if p.flags == flagBranch {
		pos, ksize, e.child = uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint64(b[8:])
	} else {
		e.flags, pos, ksize, vsize = le.Uint32(b), uint64(le.Uint32(b[4:])), uint64(le.Uint32(b[8:])),
			uint64(le.Uint32(b[12:]))
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

// showKey formats a bucket key for a message: a revision as such, other keys quoted and shortened.
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
