package diff

import (
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// MaxMinimumTTL is the highest TTL in seconds to which a server raises shorter ones: 1.5 times the longest election
// timeout that it accepts (50 s), rounded up.
const MaxMinimumTTL = 75

// leaseTTLs compares the TTLs of leases that several members have. Normal differences are a TTL that a server raised to
// its own minimum, and the remaining TTL, which members store depending on their settings. A difference that no minimum
// explains counts, also where the other rows cannot be compared: a server makes an ID for one grant, and the TTL never
// changes.
func (r *rowComparer) leaseTTLs(b *Bucket) {
	take := r.whole(b.Name)
	if len(take) < 2 {
		return
	}
	table, made := r.lineUp(take, ttlRows), r.madeByServers(take)
	ttls, lowest := r.ttls(take)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		row := Row{Key: []byte(key), Kind: TTLRow, Cells: table[key]}
		have := holders(&row, take)
		if len(have) < 2 || allSame(row.Cells, have) {
			continue // a missing lease is a separate row
		}
		proven := r.split(b.Name, &row, have, map[int]string{}, map[[2]int]bool{})
		if !proven && made[key] && !raisedOnly(ttls[key], lowest, have) {
			row.Out, proven = nil, true
		}
		row.Out = append(row.Out, without(take, have)...)
		at := without(take, row.Out)
		if proven && (!raisedOnly(ttls[key], lowest, at) || !checkpointed(r.rp) && r.remainingDiffers(key, at)) {
			b.Differ++
			if len(b.Rows) < r.o.MaxRows {
				b.Rows = append(b.Rows, row)
			}
			continue
		}
		if len(b.Normal) < r.o.MaxRows {
			b.Normal = append(b.Normal, row)
		}
	}
	if b.Differ == 0 {
		return
	}
	if b.Equal != release.Unknown { // else it says why the other rows were not compared
		b.Reason = ""
	}
	b.Equal = release.No
}

func ttlRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for i := range m.DB.Leases {
		out[m.DB.Leases[i].ID.String()] = ttlText(&m.DB.Leases[i])
	}
	return out
}

func ttlText(l *dumpdb.Lease) string {
	s := fmt.Sprintf("TTL %d s", l.TTL)
	if l.RemainingTTL != 0 {
		s += fmt.Sprintf(", remaining %d s", l.RemainingTTL)
	}
	return s
}

// ttls returns the TTLs by lease and member, and the lowest TTL that each member stores.
func (r *rowComparer) ttls(take []int) (ttls map[string]map[int]int64, lowest map[int]int64) {
	ttls, lowest = map[string]map[int]int64{}, map[int]int64{}
	for _, i := range take {
		for _, l := range r.Members[i].DB.Leases {
			if ttls[l.ID.String()] == nil {
				ttls[l.ID.String()] = map[int]int64{}
			}
			ttls[l.ID.String()][i] = l.TTL
			if have, ok := lowest[i]; !ok || l.TTL < have {
				lowest[i] = l.TTL
			}
		}
	}
	return ttls, lowest
}

// madeByServers returns the leases whose ID the server of a member made: from the end of the member's ID, without the
// sign (pkg/idutil/id.go; server/etcdserver/v3_server.go, LeaseGrant). Clients can choose others more than once.
func (r *rowComparer) madeByServers(take []int) map[string]bool {
	const unsigned = 1<<15 - 1
	from, out := map[uint16]bool{}, map[string]bool{}
	for _, i := range take {
		m := r.Members[i]
		from[uint16(m.MemberID)&unsigned] = true
		for j := range m.DB.Members {
			from[uint16(m.DB.Members[j].ID)&unsigned] = true
		}
		for _, id := range m.DB.Removed {
			from[uint16(id)&unsigned] = true
		}
	}
	delete(from, 0) // as in the small numbers that clients choose
	for _, i := range take {
		for _, l := range r.Members[i].DB.Leases {
			out[l.ID.String()] = from[uint16(l.ID>>48)]
		}
	}
	return out
}

// checkpointed reports whether the log holds a checkpoint of remaining TTLs, or is not known. The members may then
// differ in what they store of it.
func checkpointed(rp *replay.Result) bool {
	return rp == nil || rp.Survey == nil || rp.Survey.Kinds[dumplog.KindLeaseCheckpoint] > 0
}

// remainingDiffers reports whether the members store different remaining TTLs of a lease.
func (r *rowComparer) remainingDiffers(lease string, at []int) bool {
	seen := map[int64]bool{}
	for _, i := range at {
		for _, l := range r.Members[i].DB.Leases {
			if l.ID.String() == lease {
				seen[l.RemainingTTL] = true
			}
		}
	}
	return len(seen) > 1
}

// raisedOnly reports whether minimums explain the different TTLs of a lease. A member with a TTL above the lowest has
// raised it, so it stores no lease with less. A minimum is at most MaxMinimumTTL.
func raisedOnly(ttls map[int]int64, lowest map[int]int64, at []int) bool {
	low := ttls[at[0]]
	for _, i := range at {
		low = min(low, ttls[i])
	}
	return !slices.ContainsFunc(at, func(i int) bool {
		return ttls[i] > low && (ttls[i] > MaxMinimumTTL || ttls[i] > lowest[i])
	})
}

// holders returns the members that have a row. A lagging member may not have it yet.
func holders(row *Row, take []int) []int {
	return slices.DeleteFunc(slices.Clone(take), func(i int) bool { return row.Cells[i] == nil })
}

func allSame(cells []*Cell, take []int) bool {
	return !slices.ContainsFunc(take, func(i int) bool { return !sameText(cells[i], cells[take[0]]) })
}
