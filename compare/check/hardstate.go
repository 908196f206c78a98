package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// alteredVotes are the findings about HardStates with a vote that the member cannot have given.
func (pv *provenance) alteredVotes(m *evidence.Member) []Finding {
	var fs []Finding
	s := &m.WAL.Summary
	for _, v := range s.OddVotes {
		fs = append(fs, voteFinding(m, v, fmt.Sprintf("a HardState of term %d says vote %s between others that "+
			"say another one", v.Term, v.For),
			"a member stores its vote before it gives it, and keeps it until the term ends",
			"the vote of the HardStates around it"))
	}
	for _, v := range s.Votes {
		switch {
		case slices.ContainsFunc(s.OddVotes, func(o dumplog.Vote) bool { return o.Pos == v.Pos }):
		case pv.neverAMember(m, v):
			fs = append(fs, voteFinding(m, v,
				fmt.Sprintf("a HardState of term %d says vote %s, which was never a member", v.Term, v.For),
				"no configuration, member list or conf change knows the ID, in a log that continues to that term or a "+
					"later one or in the logs of all voters", "the ID of a member"))
		case pv.wasNoCandidate(m, v):
			fs = append(fs, voteFinding(m, v,
				fmt.Sprintf("a HardState of term %d says vote %s, which was no candidate in that term", v.Term, v.For),
				"a candidate votes for itself. The log of that member says another vote, and the log of the member "+
					"that it voted for agrees", "a candidate of the term"))
		}
	}
	return fs
}

func voteFinding(m *evidence.Member, v dumplog.Vote, title, explanation, expected string) Finding {
	return Finding{Kind: KindVoteAltered, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At:    termStart(m, v.Term),
		Title: m.Label() + ": " + title,
		Explanation: explanation + ". The CRC of the record holds, so it was altered before it was written, or with " +
			"new CRCs",
		Evidence: []Evidence{{Member: m.Label(), File: v.Segment, Offset: Int64(v.Offset), Field: "HardState.vote",
			Observed: v.For.String(), Expected: expected,
			Show: showLogAs(m, "--raw")}}}
}

// neverAMember reports whether no source knows the candidate although one would have to. A candidate was a voter before
// its term began. A source with a current configuration and a log that reaches that term or a later one holds the
// change that added it. For a term without entries, one of the logs of all voters holds it.
func (pv *provenance) neverAMember(m *evidence.Member, v dumplog.Vote) bool {
	witness := false
	for _, o := range pv.Members {
		if o.ClusterID != 0 && pv.apart(o, m) {
			continue
		}
		if o.MemberID == v.For || knows(&o.Membership, v.For) ||
			changedMember(o, v.For) {
			return false
		}
		whole := o.HasLog() && o.WAL.Summary.FirstIndex == 1 || o.HasDB() // these know who was removed
		witness = witness || o.HasLog() && o.ConfigurationCurrent() && whole &&
			(o.WAL.Summary.LastTerm >= v.Term || pv.hasLogsOfVoters(o))
	}
	return witness
}

// hasLogsOfVoters reports whether the logs of all voters of a member's configuration are among the sources.
func (pv *provenance) hasLogsOfVoters(m *evidence.Member) bool {
	return len(m.Membership.Voters) > 0 && !slices.ContainsFunc(m.Membership.Voters, func(id dumplog.ID) bool {
		o := pv.Members.byID(id)
		return o == nil || !o.HasLog() || o.ClusterID != m.ClusterID || pv.apart(o, m)
	})
}

// wasNoCandidate reports whether the member that got the vote voted for another member, whose log agrees. A member
// votes for a log that is as long as its own, at least. If that of the member was shorter when it voted for another, it
// may have lost its data since, and with them that it was a candidate.
func (pv *provenance) wasNoCandidate(m *evidence.Member, v dumplog.Vote) bool {
	c := pv.Members.byID(v.For)
	if c == nil || c == m || v.For == m.MemberID || pv.apart(c, m) {
		return false
	}
	own, ok := onlyVote(c, v.Term)
	if !ok || own.For == v.For || own.After < v.After {
		return false
	}
	other := pv.Members.byID(own.For)
	if other == nil || other == c || other == m || pv.apart(other, c) {
		return false
	}
	theirs, ok := onlyVote(other, v.Term)
	return ok && theirs.For == own.For
}

// onlyVote is the vote of a member in a term, if its log shows exactly one.
func onlyVote(m *evidence.Member, term uint64) (vote dumplog.Vote, ok bool) {
	if !m.HasWAL() || len(m.WAL.Summary.OddVotes) > 0 {
		return dumplog.Vote{}, false
	}
	n := 0
	for _, v := range m.WAL.Summary.Votes {
		if v.Term == term {
			vote = v
			n++
		}
	}
	return vote, n == 1
}

// statesGone: a member stores the term of a leader before it proposes to it, and what is committed before it takes a
// snapshot of that. So the log of one that did either holds a HardState.
func statesGone(rp *replay.Result, m *evidence.Member) *Finding {
	s := &m.WAL.Summary
	if s.HardState != nil || len(s.Damage) > 0 || rp == nil || rp.Survey == nil {
		return nil
	}
	for _, st := range rp.Survey.Starts[m.MemberID] {
		if s.TermAt(st.Index) == 0 {
			continue
		}
		return statesGoneFinding(m, st.Index,
			fmt.Sprintf("the member proposed entry %d itself, and stored the term of its leader before", st.Index),
			fmt.Sprintf("one of term %d or a lower one before entry %d", s.TermAt(st.Index), st.Index))
	}
	// A purged log may hold no proposal of the member. A received snapshot says nothing: the log lacks its entry.
	for _, sn := range s.Snapshots {
		if sn.Index == 0 || s.TermAt(sn.Index) != sn.Term {
			continue
		}
		return statesGoneFinding(m, sn.Index,
			fmt.Sprintf("the member took a snapshot at entry %d, which its log holds, and stored before that the "+
				"entry is committed", sn.Index),
			fmt.Sprintf("one with commit %d or higher between entry %d and the record of the snapshot", sn.Index,
				sn.Index))
	}
	return nil
}

func statesGoneFinding(m *evidence.Member, index uint64, why, expected string) *Finding {
	return &Finding{Kind: KindStatesGone, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At:    At{Index: index, Term: m.WAL.Summary.TermAt(index)},
		Title: m.Label() + ": the log lacks every HardState",
		Explanation: why + "; something else than etcd removed the records. A server that starts on this log has " +
			"forgotten its term, its vote and what is committed",
		Evidence: []Evidence{{Member: m.Label(), Field: "HardState", Observed: "none", Expected: expected,
			Show: showLogAs(m, "--raw")}}}
}
