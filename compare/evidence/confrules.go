package evidence

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// confRules tells which conf changes servers refuse (apply.Members): a refused change is committed like any other, and
// neither raft nor a member list takes it over. Where the state before a change is not fully known, the change counts
// as accepted unless the member's own database shows that it was not.
type confRules struct {
	m     *Member
	rules *apply.Members
	// from is the index of the configuration that the rules begin with; changes up to it are not judged.
	from uint64
	// founding is true while the conf changes of a bootstrap are read, which are never refused.
	founding bool
	next     uint64
	// index is that of the change being judged.
	index uint64
	// rows are the IDs of the member's database, made when one is asked for.
	rows map[dumplog.ID]bool
}

// confRules begins with the founding of the cluster where the log reaches back to it, else with the oldest
// configuration that the log goes on from; what stands before that is not judged. newest is the index of the newest
// configuration.
func (m *Member) confRules(newest uint64) *confRules {
	r := &confRules{m: m, rules: apply.NewMembers(m.Version.Release()), next: 1}
	r.rules.Admits = r.listed
	switch {
	case m.WAL.Summary.FirstIndex == 1:
		r.founding = true
	default:
		r.from = m.oldestConfState(newest, r)
	}
	if m.DB == nil {
		return r
	}
	// What the database lists as removed, and no change in the log removes, was removed before.
	for _, id := range m.DB.Removed {
		r.rules.Removed[dumplog.ID(id)] = true
	}
	for _, c := range m.WAL.Conf {
		if c.Index > r.from && c.Change.Type == dumplog.ConfChangeRemoveNode {
			delete(r.rules.Removed, c.Change.NodeID)
		}
	}
	return r
}

// oldestConfState sets the members of the oldest configuration at hand and returns its index.
func (m *Member) oldestConfState(newest uint64, r *confRules) uint64 {
	from, cs := newest, (*dumplog.ConfState)(nil)
	take := func(index uint64, c *dumplog.ConfState) {
		if c != nil && len(c.Voters) > 0 && index > 0 && (index < from || cs == nil && index == from) {
			from, cs = index, c
		}
	}
	for i := range m.WAL.Summary.Snapshots {
		take(m.WAL.Summary.Snapshots[i].Index, m.WAL.Summary.Snapshots[i].ConfState)
	}
	var files []*dumplog.SnapFile
	if m.HasSnap() {
		for _, f := range m.Snap.Files {
			if f.Damage == nil && !f.Broken && m.walKnows(f) {
				files = append(files, f)
				take(f.Index, &f.ConfState)
			}
		}
	}
	if cs == nil {
		return from
	}
	r.rules.Reset(cs.Voters, cs.Learners)
	for _, f := range files {
		if f.Index != from || f.V2 == nil {
			continue
		}
		for i := range f.V2.Members {
			id := f.V2.Members[i].ID
			if x, ok := r.rules.Get(id); ok {
				x.PeerURLs = f.V2.Members[i].PeerURLs
				r.rules.Set(id, x)
			}
		}
		for _, id := range f.V2.Removed {
			r.rules.Removed[id] = true
		}
	}
	return from
}

// sync takes over raft's newest configuration, before the first change after it.
func (r *confRules) sync(ms *Membership) {
	if len(ms.Voters) > 0 {
		r.rules.Reset(ms.Voters, ms.Learners)
	}
}

// refuse tells whether servers refuse the change, and takes it over when they do not.
func (r *confRules) refuse(c *ConfEntry) bool {
	r.founding = r.founding && c.Index == r.next && c.Change.ID == 0
	r.next, r.index = c.Index+1, c.Index
	if c.Index <= r.from {
		return false
	}
	// What has no context that decodes stops a server, and raft needs none.
	if why := r.rules.Check(&c.Change); why != apply.Accepted && why != apply.NoContext && !r.founding {
		return true
	}
	r.rules.Take(&c.Change)
	if c.Change.Type == dumplog.ConfChangeRemoveNode && c.Change.ID == 0 {
		delete(r.rules.Removed, c.Change.NodeID) // after a forced start an ID may be used again
	}
	return false
}

// listed tells whether the member's database has taken the addition over: it lists the member, or lists it as removed.
// A database that has not applied the change cannot tell; by default servers refuse it.
func (r *confRules) listed(id dumplog.ID) bool {
	if r.m.ConsistentIndex() < r.index {
		return false
	}
	if r.rows == nil {
		r.rows = r.m.Listed()
	}
	return r.rows[id]
}

// Listed are the IDs that the member's database lists, as members or as removed.
func (m *Member) Listed() map[dumplog.ID]bool {
	ids := map[dumplog.ID]bool{}
	if m.DB == nil {
		return ids
	}
	for i := range m.DB.Members {
		ids[dumplog.ID(m.DB.Members[i].ID)] = true
	}
	for _, id := range m.DB.Removed {
		ids[dumplog.ID(id)] = true
	}
	return ids
}
