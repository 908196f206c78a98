package dumpdb

import (
	"iter"
)

// Rows yields the rows of a bucket in key order. It yields damage as a *DamageError with a zero Row and continues with
// the next readable page. For a missing bucket it yields nothing, or the damage in the root tree that may hide the
// bucket. If the context of OpenContext ends before, the last error is that of the context.
func (db *DB) Rows(bucket string) iter.Seq2[Row, error] {
	return db.rows(bucket, span{})
}

// RowsFrom is Rows from the first key at or after from.
func (db *DB) RowsFrom(bucket string, from []byte) iter.Seq2[Row, error] {
	return db.rows(bucket, span{first: from})
}

func (db *DB) rows(bucket string, want span) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		more := true
		each := func(r Row, err error) bool { more = yield(r, err); return more }
		if b, ok := db.find(bucket); ok {
			s := db.newScan(db.f.ctx, bucket)
			s.want = want
			s.onDamage = func(d *DamageError) bool { return each(Row{}, d) }
			s.onLeaf = func(l *leaf) bool { return l.rows(each) }
			s.walk(b)
		} else {
			for i := 0; more && i < len(db.rootDamage); i++ {
				each(Row{}, db.rootDamage[i])
			}
		}
		if err := db.f.ctx.Err(); err != nil && more {
			yield(Row{}, err)
		}
	}
}

func (l *leaf) rows(yield func(Row, error) bool) bool {
	for _, e := range l.elems {
		row := Row{Place: l.at(e), Key: e.key, Value: e.value, Bucket: e.flags&flagBucket != 0}
		if !yield(row, nil) {
			return false
		}
	}
	return true
}

// at returns the place of an element: its page and the offset of its key in the file.
func (l *leaf) at(e elem) Place { return Place{Page: l.page.id, Offset: l.page.off + int64(e.pos)} }

// walk visits a bucket, inline or not.
func (s *scan) walk(b *bucket) {
	if !b.Inline {
		s.tree(b.Root)
		return
	}
	lv := &s.levels[0]
	lv.page = parseHeader(b.inline)
	lv.page.off, lv.page.id = b.Offset, b.Page
	if lv.page.flags != flagLeaf {
		s.damage(&DamageError{Place: b.Place, Kind: DamagePage, Expected: "a leaf page inside the bucket value",
			Observed: "type " + pageType(lv.page.flags)}, span{})
		return
	}
	s.leaf(lv, span{})
}
