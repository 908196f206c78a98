package replay

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// OlderCopies returns, for each source that is a copy of a data dir taken before that of another source, the position
// of the other one. If several are newer, it is the newest.
func (r *Result) OlderCopies() map[int]int {
	if r == nil || len(r.Copies) == 0 {
		return nil
	}
	out := map[int]int{}
	at := func(i int) *evidence.Member { return r.Members[i].Member }
	for _, c := range r.Copies {
		older, newer := c.A, c.B
		if endsAfter(at(older), at(newer)) {
			older, newer = newer, older
		}
		if !r.isOlderCopy(at(older), at(newer), c) {
			continue
		}
		if have, ok := out[older]; !ok || endsAfter(at(newer), at(have)) {
			out[older] = newer
		}
	}
	return out
}

// endsAfter orders copies of one data dir by what they have stored.
func endsAfter(a, b *evidence.Member) bool {
	x, y := []uint64{a.LastIndex(), a.ConsistentIndex(), a.Commit},
		[]uint64{b.LastIndex(), b.ConsistentIndex(), b.Commit}
	if n := slices.Compare(x, y); n != 0 {
		return n > 0
	}
	// the name of a copy is often the longer one
	return cmp.Or(cmp.Compare(len(a.Label()), len(b.Label())), cmp.Compare(a.Label(), b.Label())) < 0
}

// isOlderCopy reports whether the records of the older log are the beginning of those of the newer one, or the older
// log ends before the newer one begins and nothing shows that they belong to different histories. The database is not
// newer either.
func (r *Result) isOlderCopy(older, newer *evidence.Member, c Copies) bool {
	if c.Forked || older.HasDB() && newer.HasDB() && older.ConsistentIndex() > newer.ConsistentIndex() ||
		len(older.WAL.Summary.Damage)+len(newer.WAL.Summary.Damage) > 0 {
		return false
	}
	if c.Compared {
		return true
	}
	a, b := &older.WAL.Summary, &newer.WAL.Summary
	return a.LastIndex > 0 && a.LastIndex < b.FirstIndex && a.LastTerm <= newer.WAL.TermAt(b.FirstIndex) &&
		a.Start != dumplog.StartRestore && len(r.LogDiffs)+len(r.SameTerm) == 0
}
