package diff

import (
	"math"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// judged returns for each member the revision above which the replay compares its records with their entries: that at
// which its model began, or the highest compact revision of all members, as below that a missing record proves nothing.
func judged(members []*evidence.Member, rp *replay.Result) []int64 {
	compacted := int64(0)
	for _, m := range members {
		if m.HasDB() {
			compacted = max(compacted, m.CompactRevision())
		}
	}
	out := make([]int64, len(members))
	for i := range members {
		out[i] = math.MaxInt64
		if rp != nil && rp.Members[i].Checked {
			out[i] = max(rp.Members[i].BaseRevision, compacted)
		}
	}
	return out
}

// Judged reports whether the replay has compared a record of a row of bucket key with its entry.
func (r *Result) Judged(row *Row) bool {
	for i, cell := range row.Cells {
		if cell != nil && i < len(r.judged) && cell.Mod > r.judged[i] {
			return true
		}
	}
	return false
}
