package dumpdb

// EmptyTail is a bucket with more than one page whose last leaf has no rows and no trace of any.
type EmptyTail struct {
	Bucket string
	// Place is the empty leaf.
	Place
}

// EmptyTails lists the buckets whose last leaf is empty although there are pages before it, with nothing but zeros
// after its header. bbolt takes such a leaf for sound, and walks skip it. But Cursor.Last of bbolt up to 1.3.6 reads
// only the last page, so it does not find the last row (bbolt cursor.go). An empty leaf with the rest of rows is
// DamageEmpty.
func (db *DB) EmptyTails() []EmptyTail {
	var out []EmptyTail
	for i := range db.buckets {
		b := &db.buckets[i]
		if b.Root == 0 {
			continue
		}
		r := db.reader()
		if at, empty := r.emptyTail(b.Root); empty {
			out = append(out, EmptyTail{Bucket: b.Name, Place: at})
		}
	}
	return out
}

// emptyTail follows the right edge. ok is false if the root is a leaf, or if the edge is damaged.
func (r *pageReader) emptyTail(root uint64) (Place, bool) {
	ref := []elem{{child: root}}
	for depth := range maxDepth {
		p, dmg := r.page(ref, 0)
		if dmg != nil {
			return Place{}, false
		}
		if p.flags == flagLeaf {
			return Place{Page: p.id, Offset: p.off}, depth > 0 && p.count == 0 && p.blank()
		}
		elems, _ := p.parseElems(nil, nil)
		if p.flags != flagBranch || len(elems) == 0 {
			return Place{}, false
		}
		ref = elems[len(elems)-1:]
	}
	return Place{}, false
}

// blank reports whether a page has only zeros after its header.
func (p *page) blank() bool { return onlyZeros(p.data[headerSize:]) }
