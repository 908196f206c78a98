package replay

import (
	"cmp"
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// ownID reports whether the server made the ID of a lease that a request grants: it takes it from the sequence of the
// request IDs, right before that of the request (server/etcdserver/v3_server.go, LeaseGrant). A client may choose an ID
// that is in use, and the grant is refused then.
func ownID(r *dumplog.Request) bool {
	after := int64(uint64(r.Header.ID)&math.MaxInt64) - r.LeaseGrant.ID
	return r.Header.ID != 0 && after > 0 && after < 1<<16
}

// leaseLog is what the merged log says of leases, whether or not a model can execute it.
type leaseLog struct {
	// grants are the grants under IDs that the server made, so that no lease had one of them before; bounded.
	grants map[int64]leaseGrant
	// checkpoints are the remaining TTLs that checkpoints set, bounded.
	checkpoints map[leaseCheckpoint]bool
	// unread is the last index at which there may be a checkpoint that was not read.
	unread uint64
	last   uint64
}

// leaseGrant is a grant in the log, with the TTL that it asks for in seconds.
type leaseGrant struct {
	term, index uint64
	ttl         int64
}

func (ll *leaseLog) note(it *item) {
	index := it.entry.Index
	if ll.last > 0 && index != ll.last+1 {
		ll.unread = index - 1
	}
	ll.last = index
	if it.err != nil {
		ll.unread = index
	}
	switch r := it.req; {
	case len(it.others) > 0:
		ll.unread = index
	case r.LeaseGrant != nil && !ownID(r):
		delete(ll.grants, r.LeaseGrant.ID)
	case r.LeaseGrant != nil && len(ll.grants) < maxLeaseOps:
		if ll.grants == nil {
			ll.grants = map[int64]leaseGrant{}
		}
		ll.grants[r.LeaseGrant.ID] = leaseGrant{term: it.entry.Term, index: index, ttl: r.LeaseGrant.TTL}
	case r.LeaseCheckpoint != nil:
		ll.noteCheckpoints(r.LeaseCheckpoint.Checkpoints, index)
	}
}

func (ll *leaseLog) noteCheckpoints(cs []dumplog.LeaseCheckpoint, index uint64) {
	if ll.checkpoints == nil {
		ll.checkpoints = map[leaseCheckpoint]bool{}
	}
	for _, c := range cs {
		if len(ll.checkpoints) == maxLeaseOps {
			ll.unread = index
			return
		}
		ll.checkpoints[leaseCheckpoint{c.ID, c.RemainingTTL}] = true
	}
}

// addLeases adds the leases of the databases whose grants the log holds, but no model has executed: those before the
// place where the model begins, and all of a member without a model. A row of such a lease shows that the grant took
// effect.
func (r *Result) addLeases() {
	for _, m := range r.Members {
		if !m.Member.HasDB() || len(r.Survey.leases.grants) == 0 {
			continue
		}
		known := map[int64]bool{}
		for _, l := range m.Leases {
			known[l.ID] = true
		}
		for _, l := range m.Member.DB.Leases {
			id := int64(l.ID)
			g, ok := r.Survey.leases.grants[id]
			if !ok || known[id] {
				continue
			}
			fact := LeaseFact{ID: id, Term: g.term, Index: g.index, Asked: g.ttl, Stored: l.TTL,
				StoredRemaining: l.RemainingTTL}
			if m.Member.AppliedMax <= r.Last {
				fact.NeverAsked = r.Survey.leases.neverAsked(id, g.index, l.RemainingTTL)
			}
			m.Leases = append(m.Leases, fact)
		}
		slices.SortFunc(m.Leases, func(a, b LeaseFact) int { return cmp.Compare(uint64(a.ID), uint64(b.ID)) })
	}
}

// neverAsked reports whether no checkpoint since the grant of a lease sets a remaining TTL.
func (ll *leaseLog) neverAsked(id int64, granted uint64, stored int64) bool {
	return stored != 0 && granted > ll.unread && !ll.checkpoints[leaseCheckpoint{id, stored}]
}
