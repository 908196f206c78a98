package dumplog

// Vote is the first HardState of a log that names a candidate in a term. A member votes once per term and stores the
// vote before it answers, so a log has at most one candidate per term (raft.go, 3.0 to 3.8).
type Vote struct {
	Pos
	Term uint64
	For  ID
	// After is the entry that the log ended with when it was stored, 0 if it held none.
	After uint64
}

// CommitFall is a HardState whose commit index is lower than an earlier one. In one log the commit index only rises: a
// starting server reads it from the last HardState.
type CommitFall struct {
	Pos
	Before, Now uint64
}

// Bounds for hostile logs: falls of the commit index, votes, and candidates in one term.
const (
	maxCommitFalls = 1000
	maxVotes       = 100_000
	maxCandidates  = 16
)

// ballots follows votes and commit indexes through HardStates in physical order. It grows only with changes of the
// vote.
type ballots struct {
	votes []Vote
	falls []CommitFall
	terms []uint64
	// commit is that of the last HardState; known is false before the first.
	commit uint64
	known  bool
	first  HardState
	at     Pos
	// changes are the votes that differ from the previous HardState's, including the empty vote.
	changes []Vote
}

func (b *ballots) add(h HardState, pos Pos, after uint64) {
	if !b.known {
		b.known, b.first, b.at = true, h, pos
	} else if h.Commit < b.commit {
		b.fall(pos, b.commit, h.Commit)
	}
	b.commit = h.Commit
	b.term(h.Term)
	v := Vote{Pos: pos, Term: h.Term, For: h.Vote, After: after}
	b.change(v)
	b.vote(v)
}

func (b *ballots) change(v Vote) {
	if n := len(b.changes); (n == 0 || b.changes[n-1].Term != v.Term || b.changes[n-1].For != v.For) && n < maxVotes {
		b.changes = append(b.changes, v)
	}
}

// oddVotes returns the votes that were taken back, and those between two equal votes of their term.
func (b *ballots) oddVotes() (odd []Vote) {
	var cast, before Vote
	for _, v := range b.changes {
		switch {
		case v.Term != cast.Term:
			if v.For != 0 {
				cast, before = v, Vote{}
			}
		case v.For == cast.For:
		case v.For == 0:
			odd = append(odd, v)
		case v.For == before.For:
			odd = append(odd, cast)
			cast, before = v, Vote{}
		default:
			cast, before = v, cast
		}
	}
	return odd
}

func (b *ballots) vote(v Vote) {
	if v.For == 0 {
		return
	}
	n := len(b.votes)
	for i := n - 1; i >= 0 && b.votes[i].Term == v.Term; i-- {
		if b.votes[i].For == v.For || n-i >= maxCandidates {
			return
		}
	}
	if n < maxVotes {
		b.votes = append(b.votes, v)
	}
}

func (b *ballots) term(t uint64) {
	if n := len(b.terms); (n == 0 || b.terms[n-1] != t) && n < maxVotes {
		b.terms = append(b.terms, t)
	}
}

func (b *ballots) fall(pos Pos, before, now uint64) {
	if len(b.falls) < maxCommitFalls {
		b.falls = append(b.falls, CommitFall{Pos: pos, Before: before, Now: now})
	}
}

// join adds the votes of the next segment, before which the log ends with the entry after.
func (b *ballots) join(next *ballots, after uint64) {
	if !next.known {
		return
	}
	if b.known && next.first.Commit < b.commit {
		b.fall(next.at, b.commit, next.first.Commit)
	}
	for _, v := range next.changes {
		b.change(v)
	}
	for _, v := range next.votes {
		if v.After == 0 {
			v.After = after
		}
		b.vote(v)
	}
	for _, t := range next.terms {
		b.term(t)
	}
	b.falls = append(b.falls, next.falls...)
	b.known, b.commit = true, next.commit
}
