package diff

import (
	"context"
	"slices"
)

// maxApart is the number of records that differ, without an equal one among them, after which EachRecordApart expects
// no equal one.
const maxApart = 1000

// maxApartKeys is the number of live keys that differ up to which it looks for such records.
const maxApartKeys = 50

// EachRecordApart calls fn, where live keys differ, for every record that differs for another reason, in revision
// order: it is not the newest of a live key that differs, and the same members have an equal record above it. A
// write that a member lacks moves all later ones to other revisions, so that no equal one follows. It finds nothing
// if more live keys differ than are listed, or than 50.
func (r *Result) EachRecordApart(ctx context.Context, fn func(*RecordRow)) error {
	take := slices.DeleteFunc(r.taking(), func(i int) bool { return r.Members[i].DB.KVDamaged })
	distinct := keyComparer{r}.distinctRecords(take)
	key := r.Find("key")
	if len(distinct) < 2 || len(r.places) == 0 || key == nil || key.Differ > min(len(r.places), maxApartKeys) {
		return nil
	}
	if err := r.findKept(ctx, take, Options{}); err != nil {
		return err
	}
	m := newRecordMerge(r, take, distinct, 0)
	defer m.stop()
	a := apart{newest: map[int64][]string{}, fn: fn}
	for _, k := range r.places {
		for _, rev := range k.places {
			a.newest[rev] = append(a.newest[rev], k.key)
		}
	}
	return m.each(ctx, 0, func(at []int, differ bool) {
		if !differ {
			a.equal(at)
		} else if row := m.row(at); !slices.Contains(a.newest[row.Rev.Main], string(row.Key)) {
			a.waiting = append(a.waiting, row)
			m.ended = len(a.waiting) == maxApart
		}
	})
}

// apart keeps the records that differ until an equal one follows.
type apart struct {
	// newest are the live keys that differ, by the revision of their newest record on any member.
	newest  map[int64][]string
	waiting []RecordRow
	fn      func(*RecordRow)
}

// equal reports those that wait, of the members of an equal record.
func (a *apart) equal(at []int) {
	a.waiting = slices.DeleteFunc(a.waiting, func(row RecordRow) bool {
		if slices.ContainsFunc(row.At, func(i int) bool { return !slices.Contains(at, i) }) {
			return false
		}
		a.fn(&row)
		return true
	})
}
