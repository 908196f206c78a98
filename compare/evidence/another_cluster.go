package evidence

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// OfAnotherCluster reports whether the source is a backup or database file with members that none of the given data
// dirs has ever known: its indexes are those of another log. Without a data dir it is so if most of the files list
// members that are not those of this one, or if no list of members is that of most.
func OfAnotherCluster(members []*Member, m *Member) bool {
	if !listsMembers(m) {
		return false
	}
	dirs := 0
	for _, o := range members {
		if o.ClusterID == 0 {
			continue
		}
		dirs++
		if m.ListsMemberOf(o) {
			return false
		}
	}
	return dirs > 0 || ofFewer(members, m)
}

// listsMembers reports whether the source is a backup or database file with a list of members.
func listsMembers(m *Member) bool {
	return m.ClusterID == 0 && m.DB != nil && len(m.Membership.Bucket) > 0
}

// ListsMemberOf reports whether the database lists a member that the other source is, has or had.
func (m *Member) ListsMemberOf(o *Member) bool {
	return slices.ContainsFunc(m.Membership.Bucket,
		func(id dumplog.ID) bool { return id == o.MemberID || o.Membership.Knows(id) })
}

// ofFewer reports whether the files that have a member in common with m, directly or by way of others, are not more
// than those of another cluster among the files.
func ofFewer(members []*Member, m *Member) bool {
	var clusters [][]*Member
	for _, o := range members {
		if !listsMembers(o) {
			continue
		}
		joined := []*Member{o}
		clusters = slices.DeleteFunc(clusters, func(c []*Member) bool {
			of := slices.ContainsFunc(c, func(x *Member) bool { return x.ListsMemberOf(o) || o.ListsMemberOf(x) })
			if of {
				joined = append(joined, c...)
			}
			return of
		})
		clusters = append(clusters, joined)
	}
	own := slices.IndexFunc(clusters, func(c []*Member) bool { return slices.Contains(c, m) })
	return own >= 0 && slices.ContainsFunc(slices.Delete(slices.Clone(clusters), own, own+1),
		func(c []*Member) bool { return len(c) >= len(clusters[own]) })
}

// DatabaseOfAnotherCluster reports whether a data dir holds the database of another cluster: one whose index is below
// the newest snapshot or beyond the log, and that lists only members that nothing of this cluster names. Below the
// snapshot it needs to know who was removed since the index of the database: from the log, or where that begins later,
// from the v2 store of the snapshot or the database of another member. Beyond the log the database itself says that.
func (m *Member) DatabaseOfAnotherCluster(members []*Member) bool {
	beyond := m.DB != nil && m.HasLog() && m.StoredIndex() > m.LastIndex()
	if m.ClusterID == 0 || m.DB == nil || len(m.Membership.Bucket) == 0 || !m.Membership.RaftKnown ||
		!beyond && m.ConsistentIndex() >= m.newestSnapshotIndex() ||
		slices.Contains(m.Membership.Bucket, m.MemberID) || beyond && m.removedKnown() {
		return false
	}
	listed := make(map[dumplog.ID]bool, len(m.Membership.Bucket))
	for _, id := range m.Membership.Bucket {
		listed[id] = true
	}
	f := m.NewestSnap()
	whole := beyond || f != nil && f.V2 != nil || m.logWhole(m.ConsistentIndex(), m.newestSnapshotIndex())
	for _, o := range members {
		if o.ClusterID != m.ClusterID {
			continue
		}
		ms, own := &o.Membership, o.DB != nil && slices.Contains(o.Membership.Bucket, o.MemberID)
		if o.logNames(listed) || own && anyListed(listed, ms.Bucket, ms.Removed) {
			return false
		}
		whole = whole || own && o.ConsistentIndex() >= m.ConsistentIndex()
	}
	return whole
}

// removedKnown reports whether the database lists this member, or one of its log's members, as removed.
func (m *Member) removedKnown() bool {
	known := append([]dumplog.ID{m.MemberID}, m.Membership.Voters...)
	if m.HasWAL() {
		for i := range m.WAL.Conf {
			known = append(known, m.WAL.Conf[i].Change.NodeID)
		}
	}
	return slices.ContainsFunc(m.DB.Removed, func(id dumpdb.ID) bool { return slices.Contains(known, dumplog.ID(id)) })
}

// logNames reports whether the log or the newest snapshot names any of these members, whatever the database says.
func (m *Member) logNames(listed map[dumplog.ID]bool) bool {
	ms := &m.Membership
	if anyListed(listed, []dumplog.ID{m.MemberID}, ms.Voters, ms.Learners, ms.V2) {
		return true
	}
	if f := m.NewestSnap(); f != nil && f.V2 != nil && anyListed(listed, f.V2.Removed) {
		return true
	}
	return m.HasWAL() && slices.ContainsFunc(m.WAL.Conf, func(c ConfEntry) bool { return listed[c.Change.NodeID] })
}

func anyListed(listed map[dumplog.ID]bool, lists ...[]dumplog.ID) bool {
	return slices.ContainsFunc(lists, func(ids []dumplog.ID) bool {
		return slices.ContainsFunc(ids, func(id dumplog.ID) bool { return listed[id] })
	})
}
