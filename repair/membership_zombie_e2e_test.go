//go:build e2e

package repair

import (
	"fmt"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

const zombieID = 0xb9

// zombieRow puts a member that raft does not know into bucket members, as old restore tools left it.
func zombieRow(tx *bolt.Tx) error {
	id := fmt.Sprintf("%x", zombieID)
	return tx.Bucket([]byte("members")).Put([]byte(id), fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.121.9.8:2380"],"name":"old","clientURLs":["http://127.121.9.8:2379"]}`, zombieID))
}

// TestE2ERepairZombies: rows of members that are long gone, which 3.6 lists and counts.
func TestE2ERepairZombies(t *testing.T) {
	haunt := func(s *spoiled, upgrade string) []string {
		s.c.StopAll()
		for i := range s.c.Size() {
			editDB(s.T, s.c.DataDir(i), zombieRow)
			if upgrade != "" {
				s.c.Use(i, clustertest.Server(s.T, upgrade))
			}
		}
		if upgrade != "" {
			for i := range s.c.Size() {
				s.c.StartProcess(i)
			}
			for i := range s.c.Size() {
				s.c.WaitServing(i)
			}
			s.put(0, 10)
			s.version = upgrade
		}
		return s.c.Sources()
	}
	zombie := wanted{cause: "zombie-members-v3-bucket",
		acts: map[string]Action{"node1": Best, "node2": Keep, "node3": Keep, "b9": Remove}, why: map[string]string{"b9": "zombie"}}
	runTroubles(t, []trouble{
		{name: "zombie before an upgrade", lines: []string{"3.5.0", "3.5.35"}, spoil: func(_ *testing.T, s *spoiled) []string { return haunt(s, "") }, want: zombie},
		{name: "zombie after an upgrade to 3.6", lines: []string{"3.5.0"}, spoil: func(_ *testing.T, s *spoiled) []string { return haunt(s, "3.6.16") }, want: zombie},
	})
}
