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
	// stored is true for a conf change with which its member stored the configuration.
	stored bool
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
				out = append(out, knownConf{m, s.Index, ids, s.Pos, "snapshot record", false})
			}
		}
		if c := lastConf(m); c != nil && m.Membership.RaftKnown && m.ConfigurationCurrent() {
			ids := slices.Concat(m.Membership.Voters, m.Membership.Learners)
			index, since := confStateStored(m)
			out = append(out, knownConf{m, c.Index, ids, c.Pos, "conf change", since && index == c.Index})
		}
	}
	return out
}

// evidence points to where a configuration is known from.
func (c *knownConf) evidence() Evidence {
	return Evidence{Member: c.by.Label(), File: c.at.Segment, Offset: Int64(c.at.Offset), Field: c.field,
		Observed: fmt.Sprintf("members %v at entry %d", c.ids, c.index), Show: showLogAs(c.by, "--raw")}
}

// namesOnlyLater returns a finding if meta/confState is of a time after some configuration, and lacks one that was a
// member then and still is. The row is of a later time if it names a member that joined since, or if the member stored
// the configuration. After a restore the IDs of members may be used again, and after a forced start members may have
// been removed on one side only.
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
		kept := slices.IndexFunc(c.ids, func(id dumplog.ID) bool {
			return slices.Contains(now, id) && !slices.Contains(stored, dumpdb.ID(id))
		})
		if c.index >= at || kept < 0 {
			continue
		}
		joined := slices.IndexFunc(stored, func(id dumpdb.ID) bool {
			return slices.Contains(now, dumplog.ID(id)) && !namedBy(known, c.index, dumplog.ID(id))
		})
		since, unless := "", ""
		switch {
		case joined >= 0:
			since = fmt.Sprintf("it names %s, which joined after entry %d of the log of %s", stored[joined], c.index,
				c.by.Label())
		case c.storedBefore(m):
			since = fmt.Sprintf("it was stored with the conf change in entry %d of the log of %s or a later one",
				c.index, c.by.Label())
			unless = ", unless the member ran 3.4 when it applied that"
		default:
			continue
		}
		f.Title = m.Label() + ": meta/confState is a configuration that the cluster never had"
		f.Explanation = fmt.Sprintf("%s, and lacks %s, which was a member then and still is. The row was edited or "+
			"damaged%s. %s", since, c.ids[kept], unless, confStateUnread)
		f.Evidence = append(f.Evidence, c.evidence())
		return &f
	}
	return nil
}

// storedBefore reports whether a member stored its row with the conf change of this configuration or a later one, which
// its database has applied. It is not asked of a log that has the conf change, which a start may replay.
func (c *knownConf) storedBefore(m *evidence.Member) bool {
	return c.stored && c.by != m && slices.Contains(c.ids, m.MemberID) && c.index < m.WAL.Summary.FirstIndex &&
		c.index <= m.AppliedMin && len(m.WAL.Summary.Jumps) == 0
}

// namedBy reports whether a configuration up to an index names a member. Each of them is asked: one that was altered
// must not turn a member into one that joined later.
func namedBy(known []knownConf, index uint64, id dumplog.ID) bool {
	return slices.ContainsFunc(known, func(c knownConf) bool {
		return c.index <= index && slices.Contains(c.ids, id)
	})
}
