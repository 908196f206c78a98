package dumpdb

import (
	"errors"
	"fmt"
)

const (
	// readAhead bounds one read of neighboring pages; it fits in the second-level cache.
	readAhead = 256 << 10
	// readGap is how many unwanted pages a read may include to reach the next wanted one.
	readGap = 8
	// maxRun bounds a page with its overflow. etcd's largest request is 1.5 MiB by default, so a page that claims more
	// than maxRun is damage.
	maxRun = 256 << 20
)

// pageReader reads pages by id, several neighbors at once. What it returns is valid until its next call.
type pageReader struct {
	f        *file
	pageSize int64
	pages    uint64 // ids below this are in the file, completely or in part
	hwm      uint64
	buf, big []byte
	base     uint64 // id of the first page in buf
	have     int    // bytes in buf
	err      error  // why buf is not longer
}

func (db *DB) reader() pageReader {
	return pageReader{f: db.f, pageSize: int64(db.pageSize), pages: db.filePages(), hwm: db.meta.HighWater}
}

// page reads page ids[i] with its overflow. The following ids show which pages to read along with it.
func (r *pageReader) page(ids []elem, i int) (page, *DamageError) {
	id := ids[i].child
	place := Place{Page: id, Offset: int64(min(id, 1<<40)) * r.pageSize}
	if id >= r.pages || id >= r.hwm {
		return page{}, &DamageError{Place: place, Kind: DamageOutOfFile,
			Expected: fmt.Sprintf("a page below %d", min(r.pages, r.hwm)), Observed: fmt.Sprintf("page %d", id)}
	}
	if id < r.base || int64(id-r.base+1)*r.pageSize > int64(r.have) {
		r.fill(id, r.window(ids, i))
	}
	at := int64(id-r.base) * r.pageSize
	if int64(r.have)-at < r.pageSize {
		return page{}, r.unreadable(place, r.err)
	}
	p := parseHeader(r.buf[at:r.have:r.have])
	p.off = place.Offset
	if p.id != id {
		return p, &DamageError{Place: place, Kind: DamagePageID, Expected: fmt.Sprintf("page %d", id),
			Observed: fmt.Sprintf("page %d", p.id)}
	}
	return r.run(p, place)
}

// run cuts data to the page and its overflow, and reads what the buffer lacks.
func (r *pageReader) run(p page, place Place) (page, *DamageError) {
	n := int64(p.overflow) + 1
	if uint64(n) > min(r.hwm, r.pages)-p.id || n*r.pageSize > maxRun {
		return p, &DamageError{Place: place, Kind: DamagePage,
			Expected: fmt.Sprintf("overflow below %d", min(r.hwm, r.pages)-p.id),
			Observed: fmt.Sprintf("overflow %d", p.overflow)}
	}
	size := n * r.pageSize
	if size <= int64(len(p.data)) {
		p.data = p.data[:size:size]
		return p, nil
	}
	if int64(cap(r.big)) < size {
		r.big = make([]byte, size)
	}
	r.big = r.big[:size]
	if _, err := r.f.read(r.big, place.Offset); err != nil {
		return p, r.unreadable(place, err)
	}
	p.data = r.big
	return p, nil
}

func (r *pageReader) unreadable(place Place, err error) *DamageError {
	if errors.Is(err, errShort) {
		return &DamageError{Place: place, Kind: DamageTruncated,
			Expected: fmt.Sprintf("%d bytes of page %d", r.pageSize, place.Page),
			Observed: fmt.Sprintf("end of data at offset 0x%x", r.f.data)}
	}
	return &DamageError{Place: place, Kind: DamageUnreadable, Err: err}
}

// window returns the end of the read that starts at ids[i]. It continues while the next wanted pages follow closely.
func (r *pageReader) window(ids []elem, i int) uint64 {
	first := ids[i].child
	end := first + 1
	limit := first + uint64(max(1, readAhead/r.pageSize))
	for _, e := range ids[i+1:] {
		if e.child < end || e.child-end > readGap || e.child >= limit {
			break
		}
		end = e.child + 1
	}
	return min(end, r.pages)
}

func (r *pageReader) fill(first, end uint64) {
	size := int64(end-first) * r.pageSize
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, max(size, min(readAhead, size*4)))
	}
	r.base = first
	r.have, r.err = r.f.read(r.buf[:size], int64(first)*r.pageSize)
}

// leafDepth follows the left edge. It returns 0 if the root is a leaf or the edge is damaged.
func (r *pageReader) leafDepth(root uint64) int {
	ref := []elem{{child: root}}
	for depth := range maxDepth {
		p, dmg := r.page(ref, 0)
		if dmg != nil {
			return 0
		}
		if p.flags == flagLeaf {
			return depth
		}
		elems, _ := p.parseElems(nil, nil)
		if p.flags != flagBranch || len(elems) == 0 {
			return 0
		}
		ref = elems[:1]
	}
	return 0
}
