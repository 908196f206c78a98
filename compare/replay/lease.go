package replay

import (
	"cmp"
	"fmt"
	"slices"

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

// noteRevoke keeps the revoke of a lease that the server may have forgotten, whether it succeeded or not.
func (s *sim) noteRevoke(it *item) {
	id := it.req.LeaseRevoke.ID
	if !s.MayHaveForgotten(id) || it.entry.Index > s.m.AppliedMin {
		return
	}
	if s.revoked == nil {
		s.revoked = map[int64]KeptLease{}
	}
	s.revoked[id] = KeptLease{ID: id, Term: it.entry.Term, Index: it.entry.Index}
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
func (s *sim) noteLeaseOp(it *item, id int64) {
	if !s.follows(release.IndexWithEveryEntry) && len(s.leaseSeen) < maxLeaseOps {
		s.leaseSeen = append(s.leaseSeen, leaseOp{id, it.entry.Index})
	}
}

// repeatLeases records the operations that a restart executes again.
func (s *sim) repeatLeases(r *restart) {
	for _, op := range s.leaseSeen {
		if r.received || op.index <= s.saved || op.index >= r.index {
			continue
		}
		if s.res.Repeats == nil {
			s.res.Repeats = map[int64]LeaseRepeat{}
		}
		x, ok := s.res.Repeats[op.id]
		if !ok {
			x.From = op.index
		}
		x.To, x.Restart = op.index, r.index
		s.res.Repeats[op.id] = x
	}
}

// noteOutcome keeps how a revoke ended, until the lease is granted again.
func (s *sim) noteOutcome(it *item, o Outcome) {
	id := it.req.LeaseRevoke.ID
	if it.entry.Index > s.m.AppliedMin || s.MayHaveForgotten(id) || o.Reason == ReasonLease {
		return
	}
	if s.ends == nil {
		s.ends = map[int64]leaseEnd{}
	}
	s.ends[id] = leaseEnd{it.entry.Term, it.entry.Index, o.State, o.Reason}
}

type leaseEnd struct {
	term, index uint64
	state       State
	reason      Reason
}

// noteGone keeps the revision at which records that no entry explains delete exactly the keys of a lease.
func (s *sim) noteGone(g *group) {
	if len(g.records) == 0 || !g.records[0].del {
		return
	}
	k := s.Keys.Get(g.records[0].key)
	if k == nil || k.Lease == 0 || s.Keys.CountOfLease(k.Lease) != len(g.records) {
		return
	}
	for i := range g.records {
		if !s.Keys.Attached(k.Lease, g.records[i].key) || !g.records[i].del {
			return
		}
	}
	if s.gone == nil {
		s.gone = map[int64]leaseEnd{}
	}
	s.gone[k.Lease] = leaseEnd{index: s.now, term: uint64(g.main)}
}

// leaseFaults compares the member's leases with the log: revokes without effect, and leases that disappeared without a
// revoke.
func (s *sim) leaseFaults() {
	rows := map[int64]bool{}
	for _, l := range s.m.DB.Leases {
		rows[int64(l.ID)] = true
	}
	for _, id := range sortedKeys(s.ends) {
		e := s.ends[id]
		if s.touched[leaseKey(id)] && e.state != Missing || !rows[id] && e.state != Missing {
			continue
		}
		s.res.LeaseFaults = append(s.res.LeaseFaults,
			LeaseFault{ID: id, Kept: true, Row: rows[id], Missing: e.state == Missing, Term: e.term, Index: e.index,
				Reason: e.reason})
	}
	if s.tailTorn() {
		return
	}
	for _, id := range sortedKeys(s.Leases) {
		l := s.Leases[id]
		if _, revoked := s.ends[id]; revoked || l.Unsure || l.Granted == 0 || rows[id] || s.touched[leaseKey(id)] ||
			!s.StateKnown && len(s.Alarms) > 0 {
			continue
		}
		g := s.gone[id]
		s.res.LeaseFaults = append(s.res.LeaseFaults,
			LeaseFault{ID: id, Index: g.index, Rev: int64(g.term), Granted: l.Granted})
	}
}

// leaseCheckpoint is a remaining TTL that some checkpoint sets, in seconds.
type leaseCheckpoint struct{ id, remaining int64 }

// checkpoint notes remaining TTLs.
func (s *sim) checkpoint(it *item) {
	for _, c := range it.req.LeaseCheckpoint.Checkpoints {
		s.touch(it, leaseKey(c.ID))
		if len(s.checkpoints) < maxLeaseOps && it.entry.Index <= s.m.AppliedMax {
			if s.checkpoints == nil {
				s.checkpoints = map[leaseCheckpoint]bool{}
			}
			s.checkpoints[leaseCheckpoint{c.ID, c.RemainingTTL}] = true
		}
	}
	s.Checkpoint(it.req.LeaseCheckpoint, it.entry.Index)
}

// leaseFacts pairs the database's leases with their grants in the log. Leases that entries above the consistent index
// may have changed are left out.
func (s *sim) leaseFacts() {
	for _, l := range s.m.DB.Leases {
		id := int64(l.ID)
		if k, ok := s.revoked[id]; ok {
			s.res.Kept = append(s.res.Kept, k)
		}
		st := s.Leases[id]
		if st == nil || st.Granted == 0 || s.touched[leaseKey(id)] {
			continue
		}
		if l.TTL < st.TTL && !s.StateKnown {
			continue // the lease may be older than the log, and this grant refused
		}
		if l.TTL < st.TTL {
			s.diff("lease", l.ID.String(), fmt.Sprintf("TTL of at least %d s", st.TTL), fmt.Sprintf("TTL %d s", l.TTL))
		}
		s.res.Leases = append(s.res.Leases, LeaseFact{ID: id, Term: st.Term, Index: st.Granted, Asked: st.TTL,
			Stored:     l.TTL,
			Checkpoint: st.Checkpoint, AskedRemaining: st.Remaining, StoredRemaining: l.RemainingTTL,
			NeverAsked: s.neverAsked(id, l.RemainingTTL)})
	}
	slices.SortFunc(s.res.Leases, func(a, b LeaseFact) int { return cmp.Compare(uint64(a.ID), uint64(b.ID)) })
}

// neverAsked reports whether the database stores a remaining TTL of a lease that no checkpoint since its grant sets. If
// the log does not reach back, the grant may have been refused for a lease that was there before. Only a log without
// any checkpoint shows then that none is in use.
func (s *sim) neverAsked(id, stored int64) bool {
	n := len(s.checkpoints)
	return stored != 0 && n < maxLeaseOps && (s.StateKnown || n == 0) && !s.checkpoints[leaseCheckpoint{id, stored}]
}

// couldHaveWritten is couldWrite with the knowledge of the model: a lease revoke deletes exactly the keys of its lease.
func (s *sim) couldHaveWritten(r *dumplog.Request, g *group) bool {
	if !couldWrite(r, g) {
		return false
	}
	if r.Kind != dumplog.KindLeaseRevoke || !s.KeysKnown {
		return true
	}
	id := r.LeaseRevoke.ID
	for i := range g.records {
		if !s.Keys.Attached(id, g.records[i].key) {
			return false
		}
	}
	return len(g.records) == s.Keys.CountOfLease(id)
}

// deletedAt lists the keys of the group if it is that revision.
func (g *group) deletedAt(rev int64) []string {
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

// describeRevoke names the lease of a revoke and the keys that it deleted where it was applied.
func (ev *Event) describeRevoke(r *dumplog.Request) {
	if r.Kind == dumplog.KindPut {
		ev.Lease = r.Put.Lease
	}
	if r.Kind != dumplog.KindLeaseRevoke {
		return
	}
	ev.Lease = r.LeaseRevoke.ID
	for _, o := range ev.Outcomes {
		if len(o.keys) > len(ev.Keys) {
			ev.Keys = o.keys
		}
	}
}
