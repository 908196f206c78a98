package replay

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxSameTerm bounds the list of entries that two leaders of one term made.
const maxSameTerm = 100

// noteSameTerm files an index at which two logs hold different entries of one term, committed or not. One leader creates all
// entries of a term and never two at one index (log matching, raft paper 5.3), so there were two.
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
			d.By[h] = fmt.Sprintf("%d/%d %s", x.entry.Term, x.entry.Index, x.req.Describe(dumplog.DescribeOptions{}))
		}
	}
	r.SameTerm = append(r.SameTerm, d)
}
