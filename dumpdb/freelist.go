package dumpdb

import "fmt"

// freelist reads the stored freelist into free and reports what contradicts the page graph.
func (c *checker) freelist(free bitmap) {
	db := c.db
	bad := func(kind DamageKind, expected, observed string) {
		c.report.Damage = append(c.report.Damage, &DamageError{Place: db.place(db.meta.Freelist), Kind: kind,
			Expected: expected, Observed: observed})
	}
	ids, p, dmg := db.readFreelist(db.meta.Freelist)
	if dmg != nil {
		c.add(dmg) // then it is unknown which pages are free and which are lost
		return
	}
	for n := range uint64(p.overflow) + 1 {
		if c.used.set(p.id + n) {
			bad(DamageDoubleUse, "the freelist alone", fmt.Sprintf("page %d belongs to a tree too", p.id+n))
		}
	}
	last := uint64(1)
	for _, id := range ids {
		switch {
		case id >= db.meta.HighWater || id >= db.filePages():
			bad(DamageFreelist, fmt.Sprintf("pages below %d", min(db.meta.HighWater, db.filePages())),
				fmt.Sprintf("page %d", id))
			continue
		case id <= last:
			bad(DamageFreelist, fmt.Sprintf("a page above %d", last), fmt.Sprintf("page %d", id))
		case c.used.has(id):
			bad(DamageDoubleUse, "a free page", fmt.Sprintf("page %d is in use", id))
			continue
		}
		last = id
		free[id/64] |= 1 << (id % 64)
	}
}

// readFreelist decodes a freelist page: count ids, or, if count is 0xffff, first a 64-bit count.
func (db *DB) readFreelist(at uint64) ([]uint64, page, *DamageError) {
	r := db.reader()
	p, dmg := r.page([]elem{{child: at}}, 0)
	if dmg != nil {
		return nil, p, dmg
	}
	if p.flags != flagFreelist {
		return nil, p, &DamageError{Place: p.place(), Kind: DamageFreelist, Expected: "a freelist page",
			Observed: "type " + pageType(p.flags)}
	}
	b := p.data[headerSize:]
	n := uint64(p.count)
	if n == 0xffff {
		n = le.Uint64(b)
		b = b[8:]
	}
	if n > uint64(len(b)/8) {
		return nil, p, &DamageError{Place: p.place(), Kind: DamageFreelist,
			Expected: fmt.Sprintf("at most %d entries", len(b)/8), Observed: fmt.Sprintf("%d", n)}
	}
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = le.Uint64(b[i*8:])
	}
	return ids, p, nil
}
