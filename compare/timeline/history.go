package timeline

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// The roles of a member.
const (
	voter   = "voter"
	learner = "learner"
)

// history computes the roles of every member over time, backwards from the configuration at the end through the conf
// changes of the longest log.
func (b *builder) history() {
	m := b.newest()
	if m == nil {
		return
	}
	// role is the configuration after the current change, end the last index at which it is valid, open the member's
	// current span.
	role := map[dumplog.ID]string{}
	for _, id := range m.Membership.Voters {
		role[id] = voter
	}
	for _, id := range m.Membership.Learners {
		role[id] = learner
	}
	until := map[dumplog.ID]uint64{}
	for id := range role {
		until[id] = b.t.Last
	}
	spans := map[dumplog.ID][]Span{}
	conf := m.WAL.Conf
	closeAt := func(id dumplog.ID, from uint64) {
		if role[id] != "" {
			spans[id] = append(spans[id], Span{From: from, To: until[id], What: role[id]})
		}
	}
	for i := len(conf) - 1; i >= 0; i-- {
		c := conf[i]
		id := c.Change.NodeID
		if c.Refused || id == 0 || c.Index > m.Commit {
			continue
		}
		before, changes := roleBefore(c.Change.Type, role[id], conf[:i], id)
		if !changes {
			continue
		}
		closeAt(id, c.Index)
		role[id], until[id] = before, c.Index-1
	}
	for id := range role {
		closeAt(id, b.t.First)
	}
	for id, s := range spans {
		slices.Reverse(s)
		b.t.History = append(b.t.History, Membership{ID: id, Name: b.name(id), Spans: s})
	}
	slices.SortFunc(b.t.History, func(x, y Membership) int {
		return cmp.Or(cmp.Compare(x.Spans[0].From, y.Spans[0].From), cmp.Compare(x.ID, y.ID))
	})
}

// roleBefore returns the role of a member before a change that left it with role now. Before a removal, the earlier
// changes decide, and without any the member counts as a voter.
func roleBefore(t dumplog.ConfChangeType, now string, earlier []evidence.ConfEntry, id dumplog.ID) (before string,
	changes bool) {
	switch t {
	case dumplog.ConfChangeAddNode, dumplog.ConfChangeAddLearnerNode:
		for i := len(earlier) - 1; i >= 0; i-- {
			if c := earlier[i]; c.Change.NodeID == id && !c.Refused {
				switch c.Change.Type {
				case dumplog.ConfChangeAddLearnerNode:
					return learner, now != learner
				case dumplog.ConfChangeAddNode:
					return voter, now != voter
				case dumplog.ConfChangeRemoveNode:
					return "", now != ""
				}
			}
		}
		return "", now != ""
	case dumplog.ConfChangeRemoveNode:
		for i := len(earlier) - 1; i >= 0; i-- {
			if c := earlier[i]; c.Change.NodeID == id && !c.Refused &&
				c.Change.Type == dumplog.ConfChangeAddLearnerNode {
				return learner, true
			} else if c.Change.NodeID == id && !c.Refused {
				break
			}
		}
		return voter, true
	}
	return now, false
}

// newest returns the member with a known raft configuration and the longest log.
func (b *builder) newest() *evidence.Member {
	var best *evidence.Member
	for _, m := range b.in.Members {
		if !m.Membership.RaftKnown || len(m.Membership.Voters) == 0 {
			continue
		}
		if best == nil || m.Commit > best.Commit || m.Commit == best.Commit && m.HasLog() &&
			(!best.HasLog() || m.WAL.Summary.FirstIndex < best.WAL.Summary.FirstIndex) {
			best = m
		}
	}
	return best
}
