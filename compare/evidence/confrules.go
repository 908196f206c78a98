package evidence

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// confRules decides which conf changes servers refuse (apply.Members). A refused change is committed like any other,
// but neither raft nor a member list applies it. If the state before a change is not fully known, the change counts as
// accepted, unless the member's own database shows otherwise.
type confRules struct {
	m     *Member
	rules *apply.Members
	// from is the index of the first known configuration; changes up to it are not judged.
	from uint64
	// founding is true for the conf changes of a bootstrap, which are never refused.
	founding bool
	// gaps are the last indexes of the parts that the log lacks, known the configurations that snapshots show, both in
	// order. blind is true after a gap until the next known configuration: then no change is judged.
	gaps  []uint64
	known []knownConf
	blind bool
	next  uint64
	// index is the index of the current change.
	index uint64
	// rows are the IDs in the member's database, filled on first use.
	rows map[dumplog.ID]bool
}

// knownConf is the configuration at an index.
type knownConf struct {
	index uint64
	cs    *dumplog.ConfState
}

// confRules starts with the bootstrap of the cluster if the log reaches back to it, else with the oldest configuration
// from which the log continues. Earlier changes are not judged. newest is the index of the newest configuration.
func (m *Member) confRules(newest uint64) *confRules {
	r := &confRules{m: m, rules: apply.NewMembers(m.Version.Release()), next: 1}
	r.rules.Admits = r.listed
	r.noteGaps()
	switch {
	case m.WAL.Summary.FirstIndex == 1:
		r.founding = true
	default:
		r.from = m.oldestConfState(newest, r)
	}
	if m.DB == nil || m.WAL.Summary.FirstIndex == 1 {
		return r
	}
	// A member that the database lists as removed, and that no change in the log removes, was removed before the log,
	// unless a later configuration names it, or the database shows that a change in the log added it.
	for _, id := range m.DB.Removed {
		r.rules.Removed[dumplog.ID(id)] = true
	}
	for i := range m.WAL.Conf {
		c := &m.WAL.Conf[i].Change
		if m.WAL.Conf[i].Index > r.from && (c.Type == dumplog.ConfChangeRemoveNode || m.showsAdded(c)) {
			delete(r.rules.Removed, c.NodeID)
		}
	}
	for i := range m.WAL.Summary.Snapshots {
		if s := &m.WAL.Summary.Snapshots[i]; s.ConfState != nil && s.Index >= r.from {
			r.present(s.ConfState)
		}
	}
	if f := m.NewestSnap(); f != nil && f.Index >= r.from {
		r.present(&f.ConfState)
	}
	return r
}

// showsAdded reports whether the change adds a member that raft had afterwards: the stored ConfState lists it or, up to
// 3.4, which stores none, bucket members. A row of members_removed is not believed against them.
func (m *Member) showsAdded(c *dumplog.ConfChange) bool {
	if c.Type != dumplog.ConfChangeAddNode && c.Type != dumplog.ConfChangeAddLearnerNode {
		return false
	}
	if m.DB.Meta.ConfState != nil {
		return slices.Contains(m.Membership.MetaConfState, c.NodeID)
	}
	return slices.Contains(m.Membership.Bucket, c.NodeID)
}

// noteGaps collects the parts that the log lacks, and the configurations after them.
func (r *confRules) noteGaps() {
	s := &r.m.WAL.Summary
	for _, j := range s.Jumps {
		r.gaps = append(r.gaps, j.To)
	}
	for _, d := range s.Damage {
		if d.LostFrom > 0 && d.LostTo > 0 {
			r.gaps = append(r.gaps, d.LostTo)
		}
	}
	if len(r.gaps) == 0 {
		return
	}
	slices.Sort(r.gaps)
	for i := range s.Snapshots {
		if c := s.Snapshots[i].ConfState; c != nil && len(c.Voters) > 0 {
			r.known = append(r.known, knownConf{s.Snapshots[i].Index, c})
		}
	}
	if r.m.HasSnap() {
		for _, f := range r.m.Snap.Files {
			if f.Damage == nil && !f.Broken && r.m.walKnows(f) && len(f.ConfState.Voters) > 0 {
				r.known = append(r.known, knownConf{f.Index, &f.ConfState})
			}
		}
	}
	slices.SortStableFunc(r.known, func(a, b knownConf) int { return cmp.Compare(a.index, b.index) })
}

// passGaps handles the gaps before an entry: changes in them are not known, but the next snapshot shows what they made.
func (r *confRules) passGaps(index uint64) {
	for len(r.gaps) > 0 && r.gaps[0] < index {
		for len(r.known) > 0 && r.known[0].index < r.gaps[0] {
			r.known = r.known[1:]
		}
		r.blind, r.gaps = true, r.gaps[1:]
	}
	for afterGap := r.blind; len(r.known) > 0 && r.known[0].index < index; r.known = r.known[1:] {
		if afterGap {
			r.rules.Reset(r.known[0].cs.Voters, r.known[0].cs.Learners)
			r.blind = false
		}
	}
}

// present takes those in a configuration from the list of removed members.
func (r *confRules) present(cs *dumplog.ConfState) {
	for _, ids := range [][]dumplog.ID{cs.Voters, cs.Learners} {
		for _, id := range ids {
			delete(r.rules.Removed, id)
		}
	}
}

// oldestConfState sets the members of the oldest known configuration and returns its index.
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

// sync applies raft's newest configuration, before the first change after it.
func (r *confRules) sync(ms *Membership) {
	if len(ms.Voters) > 0 {
		r.rules.Reset(ms.Voters, ms.Learners)
	}
}

// refuse reports whether servers refuse the change. If they do not, it applies the change.
func (r *confRules) refuse(c *ConfEntry) bool {
	r.founding = r.founding && c.Index == r.next && c.Change.ID == 0
	r.next, r.index = c.Index+1, c.Index
	if c.Index <= r.from {
		return false
	}
	r.passGaps(c.Index)
	// A context that does not decode stops a server, but raft does not need it.
	if why := r.rules.Check(&c.Change); why != apply.Accepted && why != apply.NoContext && !r.founding && !r.blind {
		return true
	}
	r.rules.Take(&c.Change)
	if c.Change.Type == dumplog.ConfChangeRemoveNode && c.Change.ID == 0 {
		delete(r.rules.Removed, c.Change.NodeID) // after a forced start an ID may be used again
	}
	return false
}

// listed reports whether the member's database shows the effect of the addition: it lists the member, or lists it as
// removed. It is unknown if the database has not applied the change.
func (r *confRules) listed(id dumplog.ID) release.Answer {
	if r.m.ConsistentIndex() < r.index {
		return release.Unknown
	}
	if r.rows == nil {
		r.rows = r.m.Listed()
	}
	return release.AnswerOf(r.rows[id])
}

// Listed returns the IDs in the member's database, listed as members or as removed.
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
