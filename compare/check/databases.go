package check

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// databases answers what the databases of the sources hold.
type databases Sources

func (ss Sources) databases() databases { return databases(ss) }

// appliedByAll is the index that all of them have certainly applied.
func (ss databases) appliedByAll(at []int) uint64 {
	low := ss[at[0]].AppliedMin
	for _, pos := range at {
		low = min(low, ss[pos].AppliedMin)
	}
	return low
}

// leaseRow is the member's row of a lease by its ID in text, nil when there is none.
func (ss databases) leaseRow(pos int, id string) *dumpdb.Lease {
	m := ss[pos]
	for i := range m.DB.Leases {
		if m.DB.Leases[i].ID.String() == id {
			return &m.DB.Leases[i]
		}
	}
	return nil
}

// unreadable names databases that could not be opened for another reason than damage.
func (ss databases) unreadable() string {
	var said []string
	for _, m := range ss {
		for _, p := range m.Problems {
			if p.Part == "db" && m.DB == nil {
				said = append(said, fmt.Sprintf("%s: %s: %v", m.Label(), p.File, p.Err))
			}
		}
	}
	return strings.Join(said, "; ")
}

// newestRecord returns the highest main revision of a record in the databases, 0 if there is none. A compaction mark
// may be higher, and wrong.
func (ss databases) newestRecord() (rev int64) {
	for _, m := range ss {
		if m.HasDB() && m.DB.KV != nil {
			rev = max(rev, m.DB.KV.LastRev.Main)
		}
	}
	return rev
}
