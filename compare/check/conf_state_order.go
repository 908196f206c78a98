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
}

// knownConfs are the configurations that the sources of a cluster show.
func (mb *Membership) knownConfs(cluster dumplog.ID) (out []knownConf) {
	for _, m := range mb.Members {
		if !m.HasWAL() || m.ClusterID != cluster || len(m.WAL.Summary.Damage) > 0 {
			continue
		}
		for i := range m.WAL.Summary.Snapshots {
			if s := &m.WAL.Summary.Snapshots[i]; s.ConfState != nil && s.Index <= m.Commit {
				out = append(out, knownConf{m, s.Index, slices.Concat(s.ConfState.Voters, s.ConfState.Learners)})
			}
		}
		if at := confIndex(m).Index; m.Membership.RaftKnown && m.ConfigurationCurrent() && at > 0 {
			out = append(out, knownConf{m, at, slices.Concat(m.Membership.Voters, m.Membership.Learners)})
		}
	}
	return out
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
	for _, c := range mb.knownConfs(m.ClusterID) {
		joined := slices.IndexFunc(stored, func(id dumpdb.ID) bool {
			return slices.Contains(now, dumplog.ID(id)) && !slices.Contains(c.ids, dumplog.ID(id))
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
		return &f
	}
	return nil
}
