package dumpdb

// recordReader reads records of bucket key at known places. What it returns is valid until its next call.
type recordReader struct {
	db    *DB
	r     pageReader
	page  page
	elems []elem
}

func (rd *recordReader) at(place Place) (Revision, error) {
	var out Revision
	if rd.page.data == nil || rd.id() != place.Page {
		if dmg := rd.load(place); dmg != nil {
			rd.page.data = nil
			return out, dmg
		}
		rd.elems, _ = rd.page.parseElems(rd.elems[:0], nil)
	}
	for _, e := range rd.elems {
		if rd.page.off+int64(e.pos) == place.Offset {
			decodeRevision(&out, place, e.key, e.value)
			return out, nil
		}
	}
	return out, &DamageError{Place: place, Kind: DamagePage, Bucket: "key", Expected: "the record seen before",
		Observed: "another page content"}
}

// id returns the page id as in a Place: for an inline bucket that of the leaf that contains it.
func (rd *recordReader) id() uint64 { return uint64(rd.page.off) / uint64(rd.db.pageSize) }

func (rd *recordReader) load(place Place) *DamageError {
	if b, ok := rd.db.find("key"); ok && b.Inline && b.Page == place.Page {
		rd.page = parseHeader(b.inline)
		rd.page.off = b.Offset
		return nil
	}
	p, dmg := rd.r.page([]elem{{child: place.Page}}, 0)
	rd.page = p
	return dmg
}
