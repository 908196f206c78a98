package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// tally counts the databases that contradict an entry and those that confirm it. Databases that contradict each other
// count as confirming it: they do not agree against the log. Only the databases of members whose own log shows no
// snapshot from a leader at the entry are witnesses, and one that comes from a leader which is not among the sources:
// others may be copies of one another, as a backup is.
func (r *Result) tally(e *Event) (bad, good int, seen string) {
	sig, received := uint64(0), false
	for i, o := range e.Outcomes {
		switch o.State {
		case Contradicted, Missing:
			switch {
			case r.wroteItself(i, e.Index):
				bad++
			case !received && r.fromAbsentLeader(i, entryID{e.Index, e.Term}):
				received = true
				bad++
			}
			seen = o.State.String() + ": " + o.Detail
			if o.Partial || sig != 0 && o.Sig != 0 && o.Sig != sig {
				good++
			}
			sig = max(sig, o.Sig)
		case Applied, AppliedTwice:
			good++
		}
	}
	return bad, good, seen
}

// wroteItself reports whether the source is the only data dir of a member, which executed the entry at an index as far
// as its log shows.
func (r *Result) wroteItself(pos int, index uint64) bool {
	m := r.Members[pos].Member
	if m.MemberID == 0 || !m.HasLog() ||
		slices.ContainsFunc(m.WAL.Summary.Jumps, func(j dumplog.Jump) bool { return index <= j.To }) {
		return false
	}
	return !slices.ContainsFunc(r.Members, func(o *MemberResult) bool {
		return o.Member != m && o.Member.MemberID == m.MemberID
	})
}

// fromAbsentLeader reports whether the database of a member came, with a snapshot, from the leader that had proposed an
// entry and executed it, and that leader is not among the sources: each of the others voted for another member in that
// term.
func (r *Result) fromAbsentLeader(pos int, e entryID) bool {
	m := r.Members[pos].Member
	if m.MemberID == 0 || !m.HasLog() || m.WAL.Summary.HardState == nil || m.WAL.Summary.HardState.Term != e.Term {
		return false
	}
	jumps := m.WAL.Summary.Jumps
	if len(jumps) == 0 || jumps[len(jumps)-1].To < e.Index {
		return false
	}
	return !slices.ContainsFunc(r.Members, func(o *MemberResult) bool {
		return o.Member != m && o.Member.MemberID != 0 && !votedForOther(o.Member, e.Term)
	})
}

// votedForOther reports whether a member voted for another one in a term: it was not its leader.
func votedForOther(m *evidence.Member, term uint64) bool {
	return m.HasLog() && slices.ContainsFunc(m.WAL.Summary.Votes, func(v dumplog.Vote) bool {
		return v.Term == term && v.For != 0 && v.For != m.MemberID
	})
}
