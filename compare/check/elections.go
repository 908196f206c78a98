package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// elections answers from the votes and terms in the logs who was elected.
type elections Sources

func (ss Sources) elections() elections { return elections(ss) }

// leaders returns the leader of each term for which the logs hold the votes of a majority.
func (ss elections) leaders() map[uint64]dumplog.ID {
	votes := map[uint64]map[dumplog.ID]int{}
	var newest *evidence.Member
	seen := map[dumplog.ID]bool{}
	for _, m := range ss {
		if !m.HasWAL() || m.MemberID == 0 || seen[m.MemberID] {
			continue
		}
		seen[m.MemberID] = true
		if newest == nil || m.Commit > newest.Commit {
			newest = m
		}
		for _, v := range m.WAL.Summary.Votes {
			if votes[v.Term] == nil {
				votes[v.Term] = map[dumplog.ID]int{}
			}
			votes[v.Term][v.For]++
		}
	}
	out := map[uint64]dumplog.ID{}
	if newest == nil || len(newest.Membership.Voters) == 0 {
		return out
	}
	for term, by := range votes {
		for id, n := range by {
			if id != 0 && n >= newest.Membership.Quorum() {
				out[term] = id
			}
		}
	}
	return out
}

// leaderGaps are findings about entries that a log lacks before a snapshot record, in a term that its member led. Only
// a follower receives a snapshot of entries that it lacks. After its term a leader is one: a leader sends entries
// before it has stored them, so at its end others may hold more of its term, and send them as a snapshot.
func (ss elections) leaderGaps(m *evidence.Member) (fs []Finding) {
	if len(m.WAL.Summary.Jumps) == 0 {
		return nil
	}
	leaders := ss.leaders()
	for _, j := range m.WAL.Summary.Jumps {
		term := m.WAL.TermAt(j.To + 1)
		if m.MemberID == 0 || leaders[term] != m.MemberID || m.WAL.TermAt(j.From-1) != term || j.State > term {
			continue
		}
		votes := ss.votesFor(m, term)
		if voters, _, _ := votersAt(m, j.From); len(votes) <= len(voters)/2 {
			continue // there were more voters then
		}
		lost := fmt.Sprintf("entry %d is", j.From)
		if j.To > j.From {
			lost = fmt.Sprintf("entries %d..%d are", j.From, j.To)
		}
		fs = append(fs, Finding{Kind: KindLeaderLacksEntries, Severity: Error, Class: ClassWALDamage,
			Members: []string{m.Label()}, At: At{Term: term, Index: j.From},
			Title: fmt.Sprintf("%s: %s missing in the log", m.Label(), lost),
			Explanation: fmt.Sprintf("a snapshot record follows, as if a leader had sent it, but the member itself "+
				"was elected by most votes in term %d, to which the entries before and after belong. The CRC chain "+
				"holds, so the log was rewritten. etcd does not notice", term),
			Evidence: append([]Evidence{{Member: m.Label(), File: j.Segment, Offset: Int64(j.Offset),
				Field: fmt.Sprintf("entry %d", j.To+1), Observed: fmt.Sprintf("follows entry %d", j.From-1),
				Expected: fmt.Sprintf("follows entry %d", j.To), Show: showLogAs(m, "--raw")}}, votes...)})
	}
	return fs
}

// votesFor points to the votes for a member in a term, one of each voter.
func (ss elections) votesFor(m *evidence.Member, term uint64) (out []Evidence) {
	seen := map[dumplog.ID]bool{}
	for _, o := range ss {
		if !o.HasWAL() || o.MemberID == 0 || seen[o.MemberID] {
			continue
		}
		seen[o.MemberID] = true
		for _, v := range o.WAL.Summary.Votes {
			if v.Term == term && v.For == m.MemberID {
				out = append(out, Evidence{Member: o.Label(), File: v.Segment, Offset: Int64(v.Offset),
					Field: "HardState.vote", Observed: fmt.Sprintf("%s in term %d", v.For, term),
					Show: showLogAs(o, "--raw")})
				break
			}
		}
	}
	return out
}

// election is one whose known votes are too few.
type election struct {
	top         *evidence.Member
	term        evidence.TermEnd
	leader      dumplog.ID
	votes, need int
}

// missingVotes finds an election after the end of the logs of the whole group for which the logs of all other voters
// hold too few votes. At least one member of the group voted and does not know it.
func (ss elections) missingVotes(group ...*evidence.Member) *election {
	top := Sources(ss).configurations().newest()
	if top == nil || slices.Contains(group, top) {
		return nil
	}
	for _, t := range top.WAL.LastByTerm {
		if t.First > top.Commit || t.First == 0 || !ss.led(top, t) ||
			slices.ContainsFunc(group, func(m *evidence.Member) bool { return t.Term <= m.HighestTerm() }) {
			continue
		}
		voters, known, exact := votersAt(top, t.First)
		if !known || !exact || slices.ContainsFunc(group, func(m *evidence.Member) bool {
			return !slices.Contains(voters,
				m.MemberID)
		}) {
			continue
		}
		leader, votes, closed := ss.votesWithout(group, voters, t.Term)
		if need := len(voters)/2 + 1; closed && votes < need && votes+len(group) >= need {
			return &election{top, t, leader, votes, need}
		}
	}
	return nil
}

// led reports whether the entries of a term in a log show that a leader was elected in it. That of an altered entry
// does not: terms fall after it, the log has no HardState of its term, or another log has committed it in another term.
func (ss elections) led(m *evidence.Member, t evidence.TermEnd) bool {
	if termsFell(m) || !slices.Contains(m.WAL.Summary.StateTerms, t.Term) {
		return false
	}
	return !slices.ContainsFunc(ss, func(o *evidence.Member) bool {
		if o == m || !o.HasLog() || t.First > o.Commit {
			return false
		}
		at := o.WAL.TermAt(t.First)
		return at != 0 && at != t.Term
	})
}

// votesWithout counts the votes of a term in the logs of all voters but some. closed is true if each of those logs has
// reached the term, so that it shows whether its member voted.
func (ss elections) votesWithout(but []*evidence.Member, voters []dumplog.ID, term uint64) (leader dumplog.ID,
	votes int, closed bool) {
	for _, v := range voters {
		if slices.ContainsFunc(but, func(m *evidence.Member) bool { return m.MemberID == v }) {
			continue
		}
		o := Sources(ss).byID(v)
		if o == nil || !o.HasWAL() || !slices.Contains(o.WAL.Summary.StateTerms, term) {
			return 0, 0, false
		}
		for _, c := range o.WAL.Summary.Votes {
			switch {
			case c.Term != term || c.For == 0:
			case leader == 0 || leader == c.For:
				leader = c.For
				votes++
			default:
				return 0, 0, false // two candidates: nothing shows who was elected
			}
		}
	}
	return leader, votes, true
}
