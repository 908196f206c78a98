package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// LeaseFact is a lease according to log and database of one member; TTLs in seconds.
type LeaseFact struct {
	ID int64
	// Term and Index are those of the grant, Asked is the TTL in the grant, Stored the TTL in the database.
	Term, Index   uint64
	Asked, Stored int64
	// Checkpoint is the index of the last checkpoint of its remaining TTL, 0 when there is none; AskedRemaining is the
	// value that it sets, StoredRemaining the value in the database (0: none).
	Checkpoint                      uint64
	AskedRemaining, StoredRemaining int64
	// NeverAsked is true if a remaining TTL is stored that no checkpoint since the grant sets.
	NeverAsked bool
}

// KeptLease is a lease that outlived its revoke: Term and Index are those of the revoke.
type KeptLease struct {
	ID          int64
	Term, Index uint64
}

// leaseWatch follows what becomes of leases, by the log and by the database.
type leaseWatch struct {
	*subject
	// revoked are the revokes of leases that the server may have forgotten, until they are granted again.
	revoked map[int64]KeptLease
	// leaseSeen are the lease operations after saved. ends gives the outcome of the last revoke of each lease. gone
	// lists leases whose keys were deleted without an entry.
	leaseSeen []leaseOp
	ends      map[int64]leaseEnd
	gone      map[int64]leaseEnd
	// ownIDs are the granted leases whose IDs the server made, so that none of them existed before.
	ownIDs map[int64]bool
	// ahead counts the grants of each lease above the lowest index that the member can have applied.
	ahead map[int64]int
	// checkpoints are the remaining TTLs that checkpoints set, bounded.
	checkpoints map[leaseCheckpoint]bool
}

// grantAhead counts a grant that the member may not have applied.
func (lw *leaseWatch) grantAhead(id int64) {
	if lw.ahead == nil {
		lw.ahead = map[int64]int{}
	}
	lw.ahead[id]++
}

// oneGrant reports whether the row of a lease, if the database has it, comes from the grant that the model executed
// last: it is the only one above the entries that the member has certainly applied, and the lease did not exist below.
func (lw *leaseWatch) oneGrant(id int64, st *apply.Lease) bool {
	return lw.ahead[id] == 1 && st.Granted > lw.m.AppliedMin && (lw.StateKnown || lw.ownIDs[id]) &&
		!lw.MayHaveForgotten(id)
}

// noteRevoke keeps the revoke of a lease that the server may have forgotten, whether it succeeded or not.
func (lw *leaseWatch) noteRevoke(it *item) {
	id := it.req.LeaseRevoke.ID
	if !lw.MayHaveForgotten(id) || it.entry.Index > lw.m.AppliedMin {
		return
	}
	if lw.revoked == nil {
		lw.revoked = map[int64]KeptLease{}
	}
	lw.revoked[id] = KeptLease{ID: id, Term: it.entry.Term, Index: it.entry.Index}
}

// noteGrant notes whether the server made the ID of the lease.
func (lw *leaseWatch) noteGrant(it *item) {
	if lw.ownIDs == nil {
		lw.ownIDs = map[int64]bool{}
	}
	lw.ownIDs[it.req.LeaseGrant.ID] = ownID(it.req)
}

// LeaseRepeat is a lease whose operations From to To a restart executed once more, because the saved index was below
// them.
type LeaseRepeat struct{ From, To, Restart uint64 }

// LeaseFault is a lease that the member holds although the log revokes it, or lacks although the log does not.
type LeaseFault struct {
	ID int64
	// Kept: the revoke at Term/Index had no effect, by Reason when the rules refuse it; Row reports whether the lease's
	// row is still there too. Otherwise the lease is gone, with its keys at revision Rev if there is one (Index is then
	// where that was found).
	Kept, Row bool
	// Missing is true when the keys were not deleted; otherwise only the row contradicts the log, in the final state of
	// the database.
	Missing     bool
	Term, Index uint64
	Reason      Reason
	Rev         int64
	Granted     uint64
}

// maxLeaseOps bounds the operations that are kept between two key writes.
const maxLeaseOps = 100_000

type leaseOp struct {
	id    int64
	index uint64
}

// noteLeaseOp keeps an operation that a restart would repeat.
func (lw *leaseWatch) noteLeaseOp(it *item, id int64) {
	old := it.entry.Index <= lw.oldIndex || !lw.follows(release.IndexWithEveryEntry)
	if old && len(lw.leaseSeen) < maxLeaseOps {
		lw.leaseSeen = append(lw.leaseSeen, leaseOp{id, it.entry.Index})
	}
}

// repeatLeases records the operations that a restart executes again.
func (lw *leaseWatch) repeatLeases(r *restart) {
	for _, op := range lw.leaseSeen {
		if r.received || op.index <= lw.saved || op.index >= r.index {
			continue
		}
		if lw.res.Repeats == nil {
			lw.res.Repeats = map[int64]LeaseRepeat{}
		}
		x, ok := lw.res.Repeats[op.id]
		if !ok {
			x.From = op.index
		}
		x.To, x.Restart = op.index, r.index
		lw.res.Repeats[op.id] = x
	}
}

// noteOutcome keeps how a revoke ended, until the lease is granted again.
func (lw *leaseWatch) noteOutcome(it *item, o Outcome) {
	id := it.req.LeaseRevoke.ID
	if it.entry.Index > lw.m.AppliedMin || lw.MayHaveForgotten(id) || o.Reason == ReasonLease {
		return
	}
	if lw.ends == nil {
		lw.ends = map[int64]leaseEnd{}
	}
	lw.ends[id] = leaseEnd{it.entry.Term, it.entry.Index, o.State, o.Reason}
}

type leaseEnd struct {
	term, index uint64
	state       State
	reason      Reason
}

// noteGone keeps the revision at which records that no entry explains delete exactly the keys of a lease.
func (lw *leaseWatch) noteGone(g *group) {
	if len(g.records) == 0 || !g.records[0].deleted() {
		return
	}
	k := lw.Keys.Get(g.records[0].key)
	if k == nil || k.Lease == 0 || lw.Keys.CountOfLease(k.Lease) != len(g.records) {
		return
	}
	for i := range g.records {
		if !lw.Keys.Attached(k.Lease, g.records[i].key) || !g.records[i].deleted() {
			return
		}
	}
	if lw.gone == nil {
		lw.gone = map[int64]leaseEnd{}
	}
	lw.gone[k.Lease] = leaseEnd{index: lw.now, term: uint64(g.main)}
}

// leaseFaults compares the member's leases with the log: revokes without effect, and leases that disappeared without a
// revoke.
func (lw *leaseWatch) leaseFaults() {
	rows := map[int64]bool{}
	for _, l := range lw.m.DB.Leases {
		rows[int64(l.ID)] = true
	}
	for _, id := range sortedKeys(lw.ends) {
		e := lw.ends[id]
		if lw.touched[leaseKey(id)] && e.state != Missing || !rows[id] && e.state != Missing {
			continue
		}
		lw.res.LeaseFaults = append(lw.res.LeaseFaults,
			LeaseFault{ID: id, Kept: true, Row: rows[id], Missing: e.state == Missing, Term: e.term, Index: e.index,
				Reason: e.reason})
	}
	if lw.m.DamageHidesChanges("lease") {
		return
	}
	for _, id := range sortedKeys(lw.Leases) {
		l := lw.Leases[id]
		if _, revoked := lw.ends[id]; revoked || l.Unsure || l.Granted == 0 || rows[id] || lw.touched[leaseKey(id)] ||
			!lw.StateKnown && len(lw.Alarms) > 0 {
			continue
		}
		g := lw.gone[id]
		lw.res.LeaseFaults = append(lw.res.LeaseFaults,
			LeaseFault{ID: id, Index: g.index, Rev: int64(g.term), Granted: l.Granted})
	}
}

// leaseCheckpoint is a remaining TTL that some checkpoint sets, in seconds.
type leaseCheckpoint struct{ id, remaining int64 }

// checkpoint notes remaining TTLs.
func (lw *leaseWatch) checkpoint(it *item) {
	for _, c := range it.req.LeaseCheckpoint.Checkpoints {
		lw.touch(it, leaseKey(c.ID))
		if len(lw.checkpoints) < maxLeaseOps && it.entry.Index <= lw.m.AppliedMax {
			if lw.checkpoints == nil {
				lw.checkpoints = map[leaseCheckpoint]bool{}
			}
			lw.checkpoints[leaseCheckpoint{c.ID, c.RemainingTTL}] = true
		}
	}
	lw.Checkpoint(it.req.LeaseCheckpoint, it.entry.Index)
}

// leaseFacts pairs the database's leases with their grants in the log. Of leases that entries above the consistent
// index may have changed, those with one grant are kept, without what is known of checkpoints.
func (lw *leaseWatch) leaseFacts() {
	for _, l := range lw.m.DB.Leases {
		id := int64(l.ID)
		if k, ok := lw.revoked[id]; ok {
			lw.res.Kept = append(lw.res.Kept, k)
		}
		st := lw.Leases[id]
		open := lw.touched[leaseKey(id)]
		if st == nil || st.Granted == 0 || open && !lw.oneGrant(id, st) {
			continue
		}
		if l.TTL != st.TTL && !lw.StateKnown && !lw.ownIDs[id] {
			continue // the lease may be older than the log, and this grant refused
		}
		if l.TTL < st.TTL {
			lw.diff("lease", l.ID.String(), fmt.Sprintf("TTL of at least %d s", st.TTL), fmt.Sprintf("TTL %d s", l.TTL))
		}
		fact := LeaseFact{ID: id, Term: st.Term, Index: st.Granted, Asked: st.TTL, Stored: l.TTL}
		if !open {
			fact.Checkpoint, fact.AskedRemaining, fact.StoredRemaining = st.Checkpoint, st.Remaining, l.RemainingTTL
			fact.NeverAsked = lw.neverAsked(id, l.RemainingTTL)
		}
		lw.res.Leases = append(lw.res.Leases, fact)
	}
	slices.SortFunc(lw.res.Leases, func(a, b LeaseFact) int { return cmp.Compare(uint64(a.ID), uint64(b.ID)) })
}

// neverAsked reports whether the database stores a remaining TTL of a lease that no checkpoint since its grant sets. If
// the log does not reach back, the grant may have been refused for a lease that was there before. Only a log without
// any checkpoint shows then that none is in use.
func (lw *leaseWatch) neverAsked(id, stored int64) bool {
	n := len(lw.checkpoints)
	return stored != 0 && n < maxLeaseOps && (lw.StateKnown || n == 0) && !lw.checkpoints[leaseCheckpoint{id, stored}]
}

// keysUnnamed reports whether a request may write keys that keysOf does not list: those of a lease, in a range, or of
// many operations.
func keysUnnamed(r *dumplog.Request) bool {
	found, writes := r.LeaseRevoke != nil, 0
	r.EachOp(func(op dumplog.RequestOp) {
		found = found || op.DeleteRange != nil && len(op.DeleteRange.RangeEnd) > 0
		if op.Put != nil || op.DeleteRange != nil {
			writes++
		}
	})
	return found || writes > maxNamedKeys
}

// keysAt lists the keys of the group if it is that revision.
func (g *group) keysAt(rev int64) []string {
	if g == nil || rev == 0 || g.main != rev {
		return nil
	}
	out := make([]string, 0, len(g.records))
	for i := range g.records {
		out = append(out, g.records[i].key)
	}
	return out
}

// revokedBefore reports whether the lease did not exist any more at a revoke. The member then lacks nothing.
func (ev *Event) revokedBefore(o Outcome) bool {
	return ev.Kind == dumplog.KindLeaseRevoke && o.State == Refused && o.Reason == ReasonLease
}

// describeRest names the lease of a put or revoke, and the keys of the records where the request does not name all.
func (ev *Event) describeRest(r *dumplog.Request) {
	switch r.Kind {
	case dumplog.KindPut:
		ev.Lease = r.Put.Lease
	case dumplog.KindLeaseRevoke:
		ev.Lease = r.LeaseRevoke.ID
	}
	var seen []string
	for _, o := range ev.Outcomes {
		if len(o.keys) > len(seen) {
			seen = o.keys
		}
	}
	if len(seen) > 0 {
		ev.Keys = seen
	}
}
