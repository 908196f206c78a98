package evidence

import (
	"encoding/json"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// CollectedName is the file next to member/ in which the command collect describes its copy of a running member.
const CollectedName = "etcd-medic-collect.json"

// maxCollected bounds the size of this file in bytes.
const maxCollected = 4 << 20

// collected reports whether the data dir is a copy of a running member on which no server has run since: its log ends
// where the file says. The member itself may have applied more since.
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
