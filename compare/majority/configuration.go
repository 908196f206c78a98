package majority

import (
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// newest is the log with the newest configuration of raft, nil if none has one. Of equally new ones that of the
// lower member ID counts, so that the order of the sources decides nothing.
func (q *question) newest() (top *evidence.Member) {
	for _, m := range q.logs {
		if !m.Membership.RaftKnown || len(m.Membership.Voters) == 0 || !readable(m) {
			continue
		}
		if top == nil || m.Commit > top.Commit || m.Commit == top.Commit && m.MemberID < top.MemberID {
			top = m
		}
	}
	return top
}

// configurationsDiffer reports whether another log has other voters at the same commit index.
func (q *question) configurationsDiffer(top *evidence.Member) bool {
	return slices.ContainsFunc(q.logs, func(m *evidence.Member) bool {
		return m.Membership.RaftKnown && m.Commit == top.Commit && m.ConfigurationCurrent() &&
			!slices.Equal(m.Membership.Voters, top.Membership.Voters)
	})
}

// forced reports whether a new cluster was forced on a log. Its member commits alone, and the others do not know it.
func (q *question) forced() bool {
	return slices.ContainsFunc(q.logs, func(m *evidence.Member) bool {
		return len(m.WAL.Summary.ForceNewCluster) > 0
	})
}

// joint reports whether a snapshot has a joint configuration. etcd makes none, and two majorities decide in it.
func (q *question) joint() bool {
	isJoint := func(cs *dumplog.ConfState) bool { return cs != nil && len(cs.VotersOutgoing) > 0 }
	return slices.ContainsFunc(q.logs, func(m *evidence.Member) bool {
		f := m.NewestSnap()
		return f != nil && isJoint(&f.ConfState) || slices.ContainsFunc(m.WAL.Summary.Snapshots,
			func(s dumplog.SnapshotRecord) bool { return isJoint(s.ConfState) })
	})
}

// startedApart reports whether logs may be of different clusters with one ID: their first requests differ, or some
// begin with a restore from a backup and others do not, or do not show it.
func (q *question) startedApart() bool {
	var first dumplog.RequestID
	restored := 0
	for _, m := range q.logs {
		if id := m.WAL.First.ID; id != 0 {
			if first != 0 && id != first {
				return true
			}
			first = id
		}
		if m.WAL.Summary.Start == dumplog.StartRestore && m.WAL.First.ID != 0 {
			restored++
		} else if m.WAL.Summary.Start == dumplog.StartRestore {
			return true
		}
	}
	return restored > 0 && restored < len(q.logs)
}

// anyRemoved reports whether a source shows that a voter was removed from the cluster.
func (q *question) anyRemoved(voters []dumplog.ID) bool {
	return slices.ContainsFunc(q.members, func(m *evidence.Member) bool {
		return slices.ContainsFunc(voters, func(id dumplog.ID) bool {
			return slices.Contains(m.Membership.Removed, id)
		})
	})
}

// confChangeAbove is the last index before the first conf change that any log holds above a commit index.
func (q *question) confChangeAbove(commit uint64) uint64 {
	limit := uint64(math.MaxUint64)
	for _, m := range q.logs {
		for i := range m.WAL.Conf {
			if at := m.WAL.Conf[i].Index; at > commit {
				limit = min(limit, at-1)
				break
			}
		}
	}
	return limit
}

// configurationKnown reports whether the voters of a log are those at a later entry: no conf change can be hidden
// where the log lacks entries. Above its commit index only logs count that agree with a holder.
func (q *question) configurationKnown(top *evidence.Member, c *Commit) bool {
	from := top.ConfStateIndex() + 1
	if from > c.Index {
		return true
	}
	missing := lacksUpTo(top, max(top.Commit, agreesUpTo(top, c.Holders[0])), []span{{from, c.Index}})
	for _, m := range q.logs {
		upTo := agreesUpTo(m, c.Holders[0])
		if m == top || !readable(m) {
			continue
		}
		for _, x := range missing {
			if changesConfiguration(m, span{x.from, min(x.to, upTo)}) {
				return false
			}
		}
		missing = lacksUpTo(m, upTo, missing)
	}
	return len(missing) == 0
}

// lacksUpTo returns the parts of spans that a log does not hold, as far as it is looked at.
func lacksUpTo(m *evidence.Member, upTo uint64, spans []span) (out []span) {
	for _, x := range spans {
		if x.from <= upTo {
			out = append(out, lacks(m, span{x.from, min(x.to, upTo)})...)
		}
		if x.to > upTo {
			out = append(out, span{max(x.from, upTo+1), x.to})
		}
	}
	return out
}

// agreesUpTo is an index up to which two logs hold the same entries, 0 if none is known: where two logs have an
// entry of the same index and term, all that comes before it is the same.
func agreesUpTo(m, holder *evidence.Member) uint64 {
	last := min(m.WAL.Summary.LastIndex, holder.WAL.Summary.LastIndex)
	if t := m.WAL.TermAt(last); t == 0 || t != holder.WAL.TermAt(last) {
		return 0
	}
	return last
}

// changesConfiguration reports whether a log holds a conf change in a span.
func changesConfiguration(m *evidence.Member, x span) bool {
	return slices.ContainsFunc(m.WAL.Conf, func(c evidence.ConfEntry) bool {
		return x.from <= c.Index && c.Index <= x.to
	})
}
