package diff

import (
	"cmp"
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// kept are the keys that members must hold although their content cannot be compared at one index, by the main revision
// of the record that another member, at a later revision, has of them. Either it was written before, so that no record
// in between changed it, and no compaction removed it; or it was written since, but created before: a delete would have
// given it a later create revision.
type kept struct {
	byRev map[int64]map[string][]int
	n     int
	// full is true if there are more than maxKept.
	full bool
}

// maxKept bounds the keys that are remembered, to about 150 bytes each.
const maxKept = 500_000

func (k *kept) add(rev int64, key string, pos int) {
	if k.n == maxKept {
		k.full = true
		return
	}
	if k.byRev[rev] == nil {
		k.byRev[rev] = map[string][]int{}
	}
	k.byRev[rev][key] = append(k.byRev[rev][key], pos)
	k.n++
}

// parted are the members whose log differs from another: what one of them holds says nothing of the others.
func parted(rp *replay.Result) map[int]bool {
	out := map[int]bool{}
	if rp == nil {
		return out
	}
	for _, d := range slices.Concat(rp.LogDiffs, rp.SameTerm) {
		for i := range d.By {
			out[i] = true
		}
	}
	return out
}

// findKept finds the keys that members lack although a member at a later revision still has what was written to them
// before. It looks at pairs of which the keys of one are compared with no other.
func (r *Result) findKept(ctx context.Context, take []int, o Options) error {
	if r.kept.byRev != nil {
		return nil
	}
	r.kept.byRev = map[int64]map[string][]int{}
	now := keyComparer{&Result{Members: r.Members, Revs: make([]int64, len(r.Members))}}
	for i := range r.Members {
		if slices.Contains(take, i) {
			now.Revs[i] = r.Members[i].CurrentRevision()
		}
	}
	for _, i := range take {
		later := r.laterThan(i, take)
		if later < 0 || r.KeysNotCompared[i] == "" && r.KeysNotCompared[later] == "" {
			continue
		}
		pair := []int{i, later}
		parts := now.parts(pair, cmp.Or(o.MaxMarks, defaultMaxMarks))
		for part := range parts {
			m, err := now.mark(ctx, pair, part, parts)
			if err != nil {
				return err
			}
			r.keptOf(m, i, later)
		}
	}
	return nil
}

// keptOf notes the keys that a member at a later revision has from before the revision of another, which lacks them or
// has an older record, of those that were written since then one from before they were created.
func (r *Result) keptOf(m *marks, pos, later int) {
	if !m.whole[pos] || !m.whole[later] {
		return
	}
	current := r.Members[pos].CurrentRevision()
	for key, at := range m.live[later].at {
		mk := m.live[later].list[at]
		own, ok := m.live[pos].get(key)
		lacks := !ok || own.at != mk.at
		if mk.at > current {
			lacks = mk.create > 0 && mk.create <= current && (!ok || own.at < mk.create)
		}
		if lacks {
			r.kept.add(mk.at, key, pos)
		}
	}
}

// laterThan is the member with the highest revision, -1 if no member has a higher one than this, or if the log of
// either differs from another.
func (r *Result) laterThan(pos int, take []int) int {
	later := -1
	for _, i := range take {
		if r.Members[i].CurrentRevision() > r.Members[pos].CurrentRevision() && !r.parted[i] && !r.parted[pos] &&
			(later < 0 || r.Members[i].CurrentRevision() > r.Members[later].CurrentRevision()) {
			later = i
		}
	}
	return later
}
