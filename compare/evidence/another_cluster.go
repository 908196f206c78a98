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
// newest snapshot and lists only members that no log of this cluster has ever known. It needs a list of those that were
// removed before the logs begin: the v2 store of the snapshot, or the database of another member.
func (m *Member) DatabaseOfAnotherCluster(members []*Member) bool {
	listed := m.Membership.Bucket
	if m.ClusterID == 0 || m.DB == nil || len(listed) == 0 || !m.Membership.RaftKnown ||
		m.ConsistentIndex() >= m.newestSnapshotIndex() || slices.Contains(listed, m.MemberID) {
		return false
	}
	f := m.NewestSnap()
	whole := f != nil && f.V2 != nil
	for _, o := range members {
		if o.ClusterID != m.ClusterID {
			continue
		}
		if slices.ContainsFunc(listed, o.namedInLog) {
			return false
		}
		if o.DB == nil || !slices.Contains(o.Membership.Bucket, o.MemberID) {
			continue
		}
		if slices.ContainsFunc(listed, o.Membership.Knows) {
			return false
		}
		whole = whole || o.ConsistentIndex() >= m.ConsistentIndex()
	}
	return whole
}

// namedInLog reports whether the log or the newest snapshot names a member, whatever the database says.
func (m *Member) namedInLog(id dumplog.ID) bool {
	ms := &m.Membership
	if id == m.MemberID || ms.IsVoter(id) || slices.Contains(ms.Learners, id) || slices.Contains(ms.V2, id) {
		return true
	}
	if f := m.NewestSnap(); f != nil && f.V2 != nil && slices.Contains(f.V2.Removed, id) {
		return true
	}
	return m.HasWAL() && slices.ContainsFunc(m.WAL.Conf, func(c ConfEntry) bool { return c.Change.NodeID == id })
}
