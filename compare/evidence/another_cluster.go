package evidence

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// OfAnotherCluster reports whether the source is a backup or database file with members that none of the given data
// dirs has ever known: its indexes are those of another log.
func OfAnotherCluster(members []*Member, m *Member) bool {
	if m.ClusterID != 0 || m.DB == nil || len(m.Membership.Bucket) == 0 {
		return false
	}
	dirs := 0
	for _, o := range members {
		if o.ClusterID == 0 {
			continue
		}
		dirs++
		if slices.ContainsFunc(m.Membership.Bucket,
			func(id dumplog.ID) bool { return id == o.MemberID || o.Membership.Knows(id) }) {
			return false
		}
	}
	return dirs > 0
}

// DatabaseOfAnotherCluster reports whether a data dir holds the database of another cluster: one that is older than the
// newest snapshot and lists only members that nothing of this cluster names. It needs to know who was removed since the
// index of the database: from the log, or where that begins later, from the v2 store of the snapshot or the database of
// another member.
func (m *Member) DatabaseOfAnotherCluster(members []*Member) bool {
	if m.ClusterID == 0 || m.DB == nil || len(m.Membership.Bucket) == 0 || !m.Membership.RaftKnown ||
		m.ConsistentIndex() >= m.newestSnapshotIndex() || slices.Contains(m.Membership.Bucket, m.MemberID) {
		return false
	}
	listed := make(map[dumplog.ID]bool, len(m.Membership.Bucket))
	for _, id := range m.Membership.Bucket {
		listed[id] = true
	}
	f := m.NewestSnap()
	whole := f != nil && f.V2 != nil || m.logWhole(m.ConsistentIndex(), m.newestSnapshotIndex())
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
