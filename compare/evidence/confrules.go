package evidence

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// confRules tells which conf changes servers refuse, as membership.RaftCluster.ValidateConfigurationChange does in all releases: a
// refused change is committed like any other, and neither raft nor a member list takes it over. Where the state before a change is not
// fully known, the change counts as accepted unless the member's own database shows that it was not.
type confRules struct {
	m *Member
	// members are those of raft's configuration with the peer URLs and learner flag that they have at this point; URLs are nil where unknown.
	members map[dumplog.ID]*confMember
	// removed are the members known to be removed at this point.
	removed map[dumplog.ID]bool
	// from is the index of the configuration that the rules begin with; changes up to it are not judged.
	from uint64
	// founding is true while the conf changes of a bootstrap are read, which are never refused.
	founding bool
	next     uint64
}

type confMember struct {
	urls    []string
	learner bool
}

// maxLearners is the number of learners that servers up to 3.5 accept, and those of 3.6 and later unless a flag says otherwise.
const maxLearners = 1

// lastOneLearner is the last minor without a flag for more learners.
const lastOneLearner = 5

// confRules begins with the founding of the cluster where the log reaches back to it, else with the oldest configuration that the log goes
// on from; what stands before that is not judged. newest is the index of the newest configuration.
func (m *Member) confRules(newest uint64) *confRules {
	r := &confRules{m: m, members: map[dumplog.ID]*confMember{}, removed: map[dumplog.ID]bool{}, next: 1}
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
		r.removed[dumplog.ID(id)] = true
	}
	for _, c := range m.WAL.Conf {
		if c.Index > r.from && c.Change.Type == dumplog.ConfChangeRemoveNode {
			delete(r.removed, c.Change.NodeID)
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
	if m.Snap != nil {
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
	r.set(cs.Voters, cs.Learners)
	for _, f := range files {
		if f.Index != from || f.V2 == nil {
			continue
		}
		for i := range f.V2.Members {
			if x := r.members[f.V2.Members[i].ID]; x != nil {
				x.urls = f.V2.Members[i].PeerURLs
			}
		}
		for _, id := range f.V2.Removed {
			r.removed[id] = true
		}
	}
	return from
}

// set makes voters and learners the members, and keeps what is known of them.
func (r *confRules) set(voters, learners []dumplog.ID) {
	old := r.members
	r.members = map[dumplog.ID]*confMember{}
	for i, ids := range [][]dumplog.ID{voters, learners} {
		for _, id := range ids {
			x := old[id]
			if x == nil {
				x = &confMember{}
			}
			x.learner = i == 1
			r.members[id] = x
		}
	}
}

// sync takes over raft's newest configuration, before the first change after it.
func (r *confRules) sync(ms *Membership) {
	if len(ms.Voters) > 0 {
		r.set(ms.Voters, ms.Learners)
	}
}

// refuse tells whether servers refuse the change, and takes it over when they do not.
func (r *confRules) refuse(c *ConfEntry) bool {
	id, mc := c.Change.NodeID, c.Change.Member
	r.founding = r.founding && c.Index == r.next && c.Change.ID == 0
	r.next = c.Index + 1
	if c.Index <= r.from {
		return false
	}
	here := r.members[id]
	refused := r.removed[id]
	switch c.Change.Type {
	case dumplog.ConfChangeAddNode, dumplog.ConfChangeAddLearnerNode:
		switch {
		case mc != nil && mc.IsPromote:
			refused = refused || here == nil || !here.learner
		case here != nil, mc != nil && r.urlTaken(id, mc.PeerURLs):
			refused = true
		case c.Change.Type == dumplog.ConfChangeAddLearnerNode && r.learners() >= maxLearners:
			refused = refused || r.m.Version.Minor <= lastOneLearner && r.m.Version.Minor > 0 || !r.listed(c)
		}
	case dumplog.ConfChangeRemoveNode:
		refused = refused || here == nil
	case dumplog.ConfChangeUpdateNode:
		refused = refused || here == nil || mc != nil && r.urlTaken(id, mc.PeerURLs)
	}
	if refused && !r.founding {
		return true
	}
	r.take(c)
	return false
}

func (r *confRules) take(c *ConfEntry) {
	id, mc := c.Change.NodeID, c.Change.Member
	switch c.Change.Type {
	case dumplog.ConfChangeAddNode, dumplog.ConfChangeAddLearnerNode:
		x := r.members[id]
		if x == nil {
			x = &confMember{}
			r.members[id] = x
		}
		x.learner = c.Change.Type == dumplog.ConfChangeAddLearnerNode
		if mc != nil && !mc.IsPromote {
			x.urls = mc.PeerURLs
		}
	case dumplog.ConfChangeRemoveNode:
		delete(r.members, id)
		r.removed[id] = c.Change.ID != 0 // after a forced start an ID may be used again
	case dumplog.ConfChangeUpdateNode:
		if x := r.members[id]; x != nil && mc != nil {
			x.urls = mc.PeerURLs
		}
	}
}

func (r *confRules) urlTaken(id dumplog.ID, urls []string) bool {
	for other, x := range r.members {
		if other != id && slices.ContainsFunc(urls, func(u string) bool { return slices.Contains(x.urls, u) }) {
			return true
		}
	}
	return false
}

func (r *confRules) learners() (n int) {
	for _, x := range r.members {
		if x.learner {
			n++
		}
	}
	return n
}

// listed tells whether the member's database has taken the addition over: it lists the member, or lists it as removed. A database that
// has not applied the change cannot tell; by default servers refuse it.
func (r *confRules) listed(c *ConfEntry) bool {
	if r.m.DB == nil || r.m.ConsistentIndex() < c.Index {
		return false
	}
	id := c.Change.NodeID
	for i := range r.m.DB.Members {
		if dumplog.ID(r.m.DB.Members[i].ID) == id {
			return true
		}
	}
	return slices.ContainsFunc(r.m.DB.Removed, func(x dumpdb.ID) bool { return dumplog.ID(x) == id })
}
