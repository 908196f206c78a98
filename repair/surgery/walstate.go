package surgery

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// endState ends the log with a matching HardState. If unknown bytes were lost, a vote may have been among them. Then a
// term above all others keeps the member from voting a second time in one term.
func (r *rewriter) endState() {
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

// mayHoldVote reports whether damage may have removed a HardState. A torn tail was never synced and so had no effect;
// the other listed kinds lose no HardState.
func mayHoldVote(d *dumplog.DamageError) bool {
	switch d.Kind {
	case dumplog.DamageTornTail, dumplog.DamagePadding, dumplog.DamageIndexGap, dumplog.DamageTermOrder,
		dumplog.DamageMixed, dumplog.DamageChain:
		return false
	case dumplog.DamageCRC, dumplog.DamageTail, dumplog.DamagePayload:
		return d.LostFrom == 0 // an entry is lost there; otherwise it may be anything
	}
	return true
}

// newestUsable returns the index of the newest raft snapshot from which the member can start.
func newestUsable(m *evidence.Member) uint64 {
	if f := m.NewestSnap(); f != nil {
		return f.Index
	}
	return 0
}
