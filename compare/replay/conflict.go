package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxSameTerm bounds the list of indexes at which entries of one term differ.
const maxSameTerm = 100

// noteSameTerm files an index at which two logs hold different entries of one term, committed or not. One leader
// creates all entries of a term and never two at one index (log matching, raft paper 5.3), so there were two leaders,
// or a log was altered.
func (r *Result) noteSameTerm(it *item) {
	if len(it.others) == 0 || len(r.SameTerm) >= maxSameTerm {
		return
	}
	byTerm := map[uint64]*item{it.entry.Term: it}
	var pair [2]*item
	for _, o := range it.others {
		if first := byTerm[o.entry.Term]; first != nil && first != o {
			pair = [2]*item{first, o}
			break
		}
		byTerm[o.entry.Term] = o
	}
	if pair[0] == nil {
		return
	}
	d := LogDiff{Index: it.entry.Index, By: map[int]string{}}
	for _, x := range pair {
		for _, h := range x.holders {
			d.By[h] = fmt.Sprintf("%d/%d %s", x.entry.Term, x.entry.Index, r.describe(x.req))
		}
	}
	d.versions(it)
	r.SameTerm = append(r.SameTerm, d)
}

// versions fills in who holds which entry.
func (d *LogDiff) versions(it *item) {
	seen := map[*item]bool{it: true}
	d.Versions = [][]int{it.holders}
	d.Empty = it.isEmpty()
	for _, o := range it.others {
		if !seen[o] {
			seen[o] = true
			d.Versions = append(d.Versions, o.holders)
			d.Empty = d.Empty || o.isEmpty()
		}
	}
	slices.SortFunc(d.Versions, func(a, b []int) int {
		return cmp.Or(cmp.Compare(len(b), len(a)),
			cmp.Compare(a[0], b[0]))
	})
}

func (it *item) isEmpty() bool {
	return it.entry.Type == dumplog.EntryNormal && len(it.entry.Data) == 0
}

// DiffsComplete tells whether LogDiffs and SameTerm hold every index there is, not only the first ones.
func (r *Result) DiffsComplete() bool {
	return len(r.LogDiffs) < maxLogDiffs && len(r.SameTerm) < maxSameTerm
}
