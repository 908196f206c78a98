package surgery

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// settle ends the log with a HardState that fits it. Where bytes of unknown kind were lost, a vote may have been among
// them: a term above all that was seen keeps the member from voting a second time in one.
func (r *rewriter) settle() {
	hs := r.state
	hs.Commit = max(hs.Commit, min(max(r.hard.Commit, hs.Commit), r.last()))
	if r.term > hs.Term {
		hs.Term, hs.Vote = r.term, 0
	}
	if r.short || slices.ContainsFunc(r.s.Damage, mayHoldVote) {
		for _, m := range r.w.set.Members {
			hs.Term = max(hs.Term, datadir.SeenTerm(m))
		}
		hs.Term, hs.Vote = hs.Term+1, 0
		r.w.note("the HardState says term %d, above all that was seen: a vote may be among what was lost", hs.Term)
	}
	if hs != r.state {
		r.state = hs
		r.log.State(hs.Term, uint64(hs.Vote), hs.Commit)
	}
}

// mayHoldVote: a torn tail was never synced and so never acted upon; the other kinds left out lose no HardState.
func mayHoldVote(d *dumplog.DamageError) bool {
	switch d.Kind {
	case dumplog.DamageTornTail, dumplog.DamagePadding, dumplog.DamageIndexGap, dumplog.DamageTermOrder,
		dumplog.DamageMixed, dumplog.DamageChain:
		return false
	case dumplog.DamageCRC, dumplog.DamageTail, dumplog.DamagePayload:
		return d.LostFrom == 0 // an entry is lost there, else it may be anything
	}
	return true
}

// newestUsable is the index of the newest raft snapshot that the member can start from.
func newestUsable(m *evidence.Member) uint64 {
	if f := m.NewestSnap(); f != nil {
		return f.Index
	}
	return 0
}
