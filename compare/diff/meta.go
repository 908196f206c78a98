package diff

import (
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// metaRows returns the rows of bucket meta. All of them may differ between healthy members: the consistent index, its
// term and confState when a member commits its backend, compaction marks with the progress of a compaction, the storage
// version with the last upgrade.
func metaRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	meta := &m.DB.Meta
	number := func(name string, v *uint64) {
		if v != nil {
			out[name] = fmt.Sprint(*v)
		}
	}
	rev := func(name string, v *dumpdb.Rev) {
		if v != nil {
			out[name] = fmt.Sprintf("%d.%d", v.Main, v.Sub)
		}
	}
	number("consistent_index", meta.ConsistentIndex)
	number("term", meta.Term)
	rev("scheduledCompactRev", meta.ScheduledCompact)
	rev("finishedCompactRev", meta.FinishedCompact)
	if meta.StorageVersion != "" {
		out["storageVersion"] = meta.StorageVersion
	}
	if c := meta.ConfState; c != nil {
		out["confState"] = fmt.Sprintf("voters %v learners %v", c.Voters, c.Learners)
	}
	return out
}

// meta lists the differences in bucket meta; none counts as a difference.
func (r *rowComparer) meta() Bucket {
	b := Bucket{Name: "meta", Only: make([]int, len(r.Members))}
	take := r.taking()
	if len(take) < 2 {
		b.Reason = r.tooFew()
		return b
	}
	seen := b
	r.tabulate(&seen, take, metaRows)
	b.Equal, b.Compared, b.Normal = release.Yes, seen.Compared, seen.Rows
	return b
}

// confState compares raft's own configuration, which decides quorums: the newest ConfState and the conf changes after
// it. It is not a bucket, and only sources with a log or snapshots have it. It returns nil if fewer than two do.
func (r *rowComparer) confState() *Bucket {
	var take []int
	for _, i := range r.taking() {
		if r.Members[i].Membership.RaftKnown {
			take = append(take, i)
		}
	}
	if len(take) < 2 {
		return nil
	}
	b := &Bucket{Name: confBucket, Only: make([]int, len(r.Members))}
	r.byRow(b, take, confRows)
	return b
}

func confRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, id := range m.Membership.Voters {
		out[id.String()] = "voter"
	}
	for _, id := range m.Membership.Learners {
		out[id.String()] = "learner"
	}
	return out
}

// tabulate aligns the rows of a small bucket and compares them.
func (r *rowComparer) tabulate(b *Bucket, take []int, rows rowsFunc) {
	table := r.lineUp(take, rows)
	b.Compared = len(table)
	for _, k := range slices.Sorted(maps.Keys(table)) {
		b.weigh(take, Row{Key: []byte(k), Cells: table[k]}, r.o.MaxRows)
	}
}
