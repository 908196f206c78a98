package diff

import (
	"context"
	"slices"
)

// maxApart is the number of records that differ, without an equal one among them, after which RecordsApart expects no
// equal one. As many rows are kept.
const maxApart = 1000

// maxApartKeys is the number of live keys that differ up to which it looks for such records.
const maxApartKeys = 50

// RecordsApart finds, where live keys differ, the records that differ for another reason, in revision order: they
// are not the newest of a live key that differs, and the same members have an equal record above them. A write that
// a member lacks moves all later ones to other revisions, so that no equal one follows. It finds nothing if more
// live keys differ than are listed, or than 50. It reads the records once.
func (r *Result) RecordsApart(ctx context.Context) (*Records, error) {
	if r.apart != nil {
		return r.apart, nil
	}
	a := apart{found: &Records{}, newest: map[int64][]string{}}
	take := slices.DeleteFunc(r.taking(), func(i int) bool { return r.Members[i].DB.KVDamaged })
	distinct := keyComparer{r}.distinctRecords(take)
	key := r.Find("key")
	if len(distinct) < 2 || len(r.places) == 0 || key == nil || key.Differ > min(len(r.places), maxApartKeys) {
		return a.found, nil
	}
	if err := r.findKept(ctx, take, Options{}); err != nil {
		return nil, err
	}
	for _, k := range r.places {
		for _, rev := range k.places {
			a.newest[rev] = append(a.newest[rev], k.key)
		}
	}
	m := newRecordMerge(r, take, distinct, 0)
	defer m.stop()
	err := m.each(ctx, 0, func(at []int, differ bool) {
		if !differ {
			a.equal(at)
		} else if row := m.row(at); !slices.Contains(a.newest[row.Rev.Main], string(row.Key)) {
			a.waiting = append(a.waiting, row)
			m.ended = len(a.waiting) == maxApart
		}
	})
	if err != nil {
		return nil, err
	}
	r.apart = a.found
	return r.apart, nil
}

// apart keeps the records that differ until an equal one follows.
type apart struct {
	// newest are the live keys that differ, by the revision of their newest record on any member.
	newest  map[int64][]string
	waiting []RecordRow
	found   *Records
}

// equal takes those that wait, of the members of an equal record.
func (a *apart) equal(at []int) {
	a.waiting = slices.DeleteFunc(a.waiting, func(row RecordRow) bool {
		if slices.ContainsFunc(row.At, func(i int) bool { return !slices.Contains(at, i) }) {
			return false
		}
		if a.found.Differ++; len(a.found.Rows) < maxApart {
			a.found.Rows = append(a.found.Rows, row)
		}
		return true
	})
}
