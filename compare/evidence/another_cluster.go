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
