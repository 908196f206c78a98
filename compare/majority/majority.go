// Package majority finds entries that are committed because a majority of the voters holds them, though no source
// shows the commit.
//
// A leader is the first to know that an entry is committed. A member writes the commit index to its log only
// together with later entries, and to its database later still. So the last writes of a cluster are often in the logs
// of a majority, while no HardState, snapshot or database shows them to be committed.
//
// The rule is raft's (raft paper, 5.4): an entry of term T is committed if a majority of the voters have it in their
// logs and each of them stored it while its current term was T. Every later leader needs the vote of one of them,
// and that member votes only for a log with the entry. The current term has to be T: an entry of an older term that a
// newer leader has sent to a majority may still be replaced (figure 8). All entries before it are committed as well.
//
// The evidence shows only the last term of each log, and logs may be copied at different moments. Both are safe: a
// member whose log shows the entry and no term above T held the entry while its term was T, whatever it did later.
// Find is stricter than that. It concludes nothing where a log or the configuration is in doubt.
package majority

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Commit is an entry that is committed, with all before it, because a majority of the voters holds it.
type Commit struct {
	// Index is the last entry that is meant. Held and Term are the entry that the majority holds in its term: the same
	// one, or a later one.
	Index, Held, Term uint64
	// Known is the highest index that a source of the logs shows to be committed.
	Known uint64
	// Holders are the voters whose logs count, Voters is the number of all voters.
	Holders []*evidence.Member
	Voters  int
}

// Find returns the highest entry of a cluster that a majority of its voters holds, nil if there is none above the
// commit index of all its logs, or if it is not certain.
func Find(cluster dumplog.ID, members []*evidence.Member) *Commit {
	q := &question{}
	for _, m := range members {
		switch {
		case m.ClusterID == cluster && m.HasLog():
			q.logs = append(q.logs, m)
		case m.ClusterID != cluster && m.ClusterID != 0:
			continue
		}
		q.members = append(q.members, m)
	}
	top := q.newest()
	if cluster == 0 || top == nil || q.forced() || q.joint() || q.startedApart() || q.configurationsDiffer(top) ||
		q.anyRemoved(top.Membership.Voters) {
		return nil
	}
	c := q.highest(top.Membership.Voters, q.confChangeAbove(top.Commit))
	if c == nil || c.Index <= q.known() || q.contradicted(c) || !q.configurationKnown(top, c) {
		return nil
	}
	c.Known = q.known()
	return c
}

// Says names the entries from an index on that are committed, and how that is known.
func (c *Commit) Says(from uint64) string {
	labels := make([]string, len(c.Holders))
	for i, m := range c.Holders {
		labels[i] = m.Label()
	}
	n, are, it := len(labels), "are", fmt.Sprintf("entry %d", c.Held)
	if from >= c.Index {
		are = "is"
		if c.Held == c.Index {
			it = "it"
		}
	}
	return fmt.Sprintf("%s %s committed, though no source shows the commit: the %s of %s, %d of %s, %s %s, and %s "+
		"no newer term", plural.Span(from, c.Index, "entry", "entries"), are, plural.Form(n, "log", "logs"),
		plural.List(labels), n, plural.Of(c.Voters, "voter", "voters"), plural.Form(n, "holds", "hold"), it,
		plural.Form(n, "shows", "show"))
}

// UpTo returns the part up to an entry.
func (c *Commit) UpTo(index uint64) *Commit {
	part := *c
	part.Index = min(c.Index, index)
	return &part
}

// HeldBy reports whether a member is one of the holders.
func (c *Commit) HeldBy(id dumplog.ID) bool {
	return slices.ContainsFunc(c.Holders, func(m *evidence.Member) bool { return m.MemberID == id })
}

// IsIn reports whether a log holds the entry and those before it, or those before it as far as it reaches.
func (c *Commit) IsIn(m *evidence.Member) bool {
	last := min(m.WAL.Summary.LastIndex, c.Index)
	t := m.WAL.TermAt(last)
	return t != 0 && t == c.Holders[0].WAL.TermAt(last)
}

// question is the search in the logs of one cluster.
type question struct {
	logs []*evidence.Member
	// members are logs and sources without a log that may belong to the cluster.
	members []*evidence.Member
}

// known is the highest index that a log or its data dir shows to be committed.
func (q *question) known() (index uint64) {
	for _, m := range q.logs {
		index = max(index, m.Commit)
	}
	return index
}

// tail is the last stretch of entries of one term in a log.
type tail struct {
	of *evidence.Member
	evidence.TermEnd
}

// highest returns the highest entry up to limit that a majority of the voters holds in their current term.
func (q *question) highest(voters []dumplog.ID, limit uint64) *Commit {
	byTerm := map[uint64][]tail{}
	for _, m := range q.logs {
		if !slices.Contains(voters, m.MemberID) || q.isTwice(m.MemberID) || !counts(m) {
			continue
		}
		end := m.WAL.LastByTerm[len(m.WAL.LastByTerm)-1]
		if end.Term == m.WAL.Summary.HardState.Term {
			byTerm[end.Term] = append(byTerm[end.Term], tail{m, end})
		}
	}
	need := len(voters)/2 + 1
	for term, tails := range byTerm {
		if len(tails) < need {
			continue // at most one term has a majority
		}
		ends := slices.SortedFunc(slices.Values(tails), func(a, b tail) int { return cmp.Compare(b.Last, a.Last) })
		c := &Commit{Held: min(ends[need-1].Last, limit), Term: term, Voters: len(voters)}
		c.Index = c.Held
		for _, t := range tails {
			if t.First <= c.Index && c.Index <= t.Last {
				c.Holders = append(c.Holders, t.of)
			}
		}
		if len(c.Holders) < need {
			return nil
		}
		return c
	}
	return nil
}

// isTwice reports whether several logs are of the same member, such as copies of different moments.
func (q *question) isTwice(id dumplog.ID) bool {
	n := 0
	for _, m := range q.logs {
		if m.MemberID == id {
			n++
		}
	}
	return n > 1
}

// contradicted reports whether a log holds what cannot be there if the entry is committed: at its index an entry of
// a newer term, or another one in a log that also has entries of newer terms.
func (q *question) contradicted(c *Commit) bool {
	return slices.ContainsFunc(q.logs, func(m *evidence.Member) bool {
		at := m.WAL.TermAt(c.Index)
		return at > c.Term || at != 0 && at != c.Term && m.WAL.Summary.LastTerm > c.Term
	})
}
