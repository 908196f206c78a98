package replay

import (
	"iter"
	"math"
)

// groupsIn yields the records of a span of revisions as far as the window asks for them, one main revision at a time.
// A group that begins with an unread record is valid until the next one.
func (w *window) groupsIn(s span) iter.Seq[*group] { return groupsOf(w.rows(s)) }

// rows yields the records of a span of revisions. Those of a long one, of a database without damage, are read in parts.
func (w *window) rows(s span) iter.Seq[row] {
	if w.s.m.DB.KVDamaged || s.len() <= partRevisions {
		return rowsBetween(w.s.m.DB.Handle, w.s.m.DB.KV.BumpMarker, s, w.reads())
	}
	return func(yield func(row) bool) {
		for _, rows := range w.parts().of(s) {
			for i := range rows {
				if !yield(rows[i]) {
					return
				}
			}
		}
	}
}

// parts reads the records that rows yields.
func (w *window) parts() *parts[[]row] {
	db, bump := w.s.m.DB.Handle, w.s.m.DB.KV.BumpMarker
	return newParts(func(part span, most int, into []row) ([]row, int) {
		into = into[:0]
		bytes := 0
		for r := range rowsBetween(db, bump, part, w.reads()) {
			into = append(into, r)
			if bytes += len(r.key); len(into) > most {
				break
			}
			if bytes > partBytes && most < math.MaxInt {
				return into, most + 1
			}
		}
		return into, len(into)
	})
}

// reads returns a filter that reports whether the content of a record matters: it may be of a group that an entry of
// the window wrote, or of a key that a compare or a lease revoke asks for. Of most records only the revision does.
func (w *window) reads() rowFilter {
	fitting := false // the group's first record is one that an entry may begin with
	return func(first bool, key []byte, del bool) bool {
		if first {
			_, named := w.byKey[string(key)]
			fitting = named || len(w.wide) > 0 || del && len(w.byLease) > 0
		}
		if fitting || len(w.byLease) > 0 {
			return true
		}
		_, guarded := w.guards[string(key)]
		return guarded
	}
}
