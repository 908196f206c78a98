package evidence

import (
	"encoding/json"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// CollectedName is the file next to member/ with which the command collect says how it copied a running member.
const CollectedName = "etcd-medic-collect.json"

// maxCollected bounds what is read of it.
const maxCollected = 4 << 20

// collected tells whether the data dir is a copy of a running member on which nothing ran since: its log ends where the
// file says. The member itself went on.
func (l *layout) collected(m *Member) bool {
	if l.member == "" || !m.HasWAL() {
		return false
	}
	b, err := regular.ReadFile(filepath.Join(l.root, CollectedName), maxCollected)
	if err != nil {
		return false
	}
	var c struct {
		MemberID  dumplog.ID `json:"memberID"`
		ClusterID dumplog.ID `json:"clusterID"`
		LastIndex uint64     `json:"lastIndex"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return false
	}
	return c.MemberID == m.MemberID && c.ClusterID == m.ClusterID && c.LastIndex == m.WAL.Summary.LastIndex
}
