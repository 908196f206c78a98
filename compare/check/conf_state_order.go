package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// An ID that was removed is never added again, so a member that two configurations name was one all the time between
// them. A configuration that names a member which joined since the first of the two then names that member as well.

// knownConf is a configuration of raft that a source shows, at an index at which raft had it.
type knownConf struct {
	by    *evidence.Member
	index uint64
	ids   []dumplog.ID
	// at is where its log shows it: a snapshot record, or the last conf change, which field names.
	at    dumplog.Pos
	field string
}

// knownConfs are the configurations that the sources of a cluster show.
func (mb *Membership) knownConfs(cluster dumplog.ID) (out []knownConf) {
	for _, m := range mb.Members {
		if !m.HasWAL() || m.ClusterID != cluster || len(m.WAL.Summary.Damage) > 0 {
			continue
		}
		for i := range m.WAL.Summary.Snapshots {
			if s := &m.WAL.Summary.Snapshots[i]; s.ConfState != nil && s.Index <= m.Commit {
				ids := slices.Concat(s.ConfState.Voters, s.ConfState.Learners)
				out = append(out, knownConf{m, s.Index, ids, s.Pos, "snapshot record"})
			}
		}
		if c := lastConf(m); c != nil && m.Membership.RaftKnown && m.ConfigurationCurrent() {
			ids := slices.Concat(m.Membership.Voters, m.Membership.Learners)
			out = append(out, knownConf{m, c.Index, ids, c.Pos, "conf change"})
		}
	}
	return out
}

// evidence points to where a configuration is known from.
func (c *knownConf) evidence() Evidence {
	return Evidence{Member: c.by.Label(), File: c.at.Segment, Offset: Int64(c.at.Offset), Field: c.field,
		Observed: fmt.Sprintf("members %v at entry %d", c.ids, c.index), Show: showLogAs(c.by, "--raw")}
}

// namesOnlyLater returns a finding if meta/confState names a member that joined after some configuration, and lacks one
// that was a member then and still is. After a restore the IDs of members may be used again, and after a forced start
// members may have been removed on one side only.
func (mb *Membership) namesOnlyLater(m *evidence.Member, f Finding) *Finding {
	raft := &m.Membership
	if !raft.RaftKnown || !m.ConfigurationCurrent() || slices.ContainsFunc(mb.Members, Restored) ||
		mb.Replay != nil && len(mb.Replay.Forced) > 0 {
		return nil
	}
	now, at := slices.Concat(raft.Voters, raft.Learners), max(confIndex(m).Index, m.NewestRecord().Index)
	cs := m.DB.Meta.ConfState
	stored := slices.Concat(cs.Voters, cs.Learners)
	known := mb.knownConfs(m.ClusterID)
	for _, c := range known {
		joined := slices.IndexFunc(stored, func(id dumpdb.ID) bool {
			return slices.Contains(now, dumplog.ID(id)) && !namedBy(known, c.index, dumplog.ID(id))
		})
		kept := slices.IndexFunc(c.ids, func(id dumplog.ID) bool {
			return slices.Contains(now, id) && !slices.Contains(stored, dumpdb.ID(id))
		})
		if c.index >= at || joined < 0 || kept < 0 {
			continue
		}
		f.Title = m.Label() + ": meta/confState is a configuration that the cluster never had"
		f.Explanation = fmt.Sprintf("it names %s, which joined after entry %d of the log of %s, and lacks %s, "+
			"which was a member then and still is. The row was edited or damaged. %s", stored[joined], c.index,
			c.by.Label(), c.ids[kept], confStateUnread)
		f.Evidence = append(f.Evidence, c.evidence())
		return &f
	}
	return nil
}

// namedBy reports whether a configuration up to an index names a member. Each of them is asked: one that was altered
// must not turn a member into one that joined later.
func namedBy(known []knownConf, index uint64, id dumplog.ID) bool {
	return slices.ContainsFunc(known, func(c knownConf) bool {
		return c.index <= index && slices.Contains(c.ids, id)
	})
}
