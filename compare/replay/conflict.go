package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxSameTerm bounds the list of indexes at which entries of one term differ.
const maxSameTerm = 100

// noteSameTerm records an index at which two logs hold different entries of one term, committed or not. One leader
// creates all entries of a term and never two at one index (log matching, raft paper 5.3), so there were two leaders,
// or a log was altered.
func (r *Result) noteSameTerm(it *item) {
	if len(it.others) == 0 || len(r.SameTerm) >= maxSameTerm {
		return
	}
	versions := it.versions()
	ofTerm := map[uint64]int{}
	for _, v := range versions {
		ofTerm[v.entry.Term]++
	}
	d := LogDiff{Index: it.entry.Index, By: map[int]string{}}
	for _, v := range versions {
		if ofTerm[v.entry.Term] < 2 {
			continue
		}
		for _, h := range v.holders {
			d.By[h] = fmt.Sprintf("%d/%d %s", v.entry.Term, v.entry.Index, r.describe(v.req))
		}
	}
	if len(d.By) == 0 {
		return
	}
	d.addVersions(versions)
	r.SameTerm = append(r.SameTerm, d)
}

// versions returns the different entries at the index, first the entry in most logs, then in the order of the logs.
func (it *item) versions() []*item {
	out := []*item{it}
	for _, o := range it.others {
		if !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *item) int {
		return cmp.Or(cmp.Compare(len(b.holders), len(a.holders)), cmp.Compare(a.holders[0], b.holders[0]))
	})
	return out
}

// addVersions fills in who holds which entry.
func (d *LogDiff) addVersions(versions []*item) {
	for _, v := range versions {
		d.Versions = append(d.Versions, v.holders)
		d.Empty = d.Empty || v.isEmpty()
	}
}

func (it *item) isEmpty() bool {
	return it.entry.Type == dumplog.EntryNormal && len(it.entry.Data) == 0
}

// DiffsComplete reports whether LogDiffs and SameTerm hold every index there is, not only the first ones.
func (r *Result) DiffsComplete() bool {
	return len(r.LogDiffs) < maxLogDiffs && len(r.SameTerm) < maxSameTerm
}
