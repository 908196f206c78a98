package replay

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestUncertainBeforeThePlace: what is not known where the replay begins (rights, leases) gives an entry no record that
// a later one, which must have written, needs.
func TestUncertainBeforeThePlace(t *testing.T) {
	purgedCase{tell: func(s *story) {
		s.EnableAuth()
		s.Add(clustertest.Step{User: "root", Req: putRequest("/app/a", "1", 0)}) // 2
		s.Purged = s.Add(clustertest.Step{User: "root", Req: putRequest("/app/b", "1", 0)})
		s.Add(clustertest.Step{User: "root", Req: putRequest("/app/x", "1", 0)})
		s.Add(clustertest.Step{User: "app", Req: putRequest("/other", "1", 0), Skip: everyone})
		s.Add(clustertest.Step{User: "root", Req: &pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}}})
		s.Add(clustertest.Step{Req: putRequest("/other", "1", 0)})
		s.Add(clustertest.Step{Req: putRequest("/last", "1", 0)})
	}, sound: "from 3, applied 3"}.check(t)
	purgedCase{tell: func(s *story) {
		s.early()
		s.compact(5)
		s.purge() // 8
		s.put("n", "1")
		s.failed(putRequest("leased", "1", 7)) // the lease is not there, nor will it be
		s.put("m", "1")
		s.grant(7)
		s.wrote(putRequest("leased", "1", 7))
		s.put("end", "1")
	}, sound: "from 8, applied 5"}.check(t)
	purgedCase{tell: func(s *story) {
		s.early()
		s.compact(5)
		s.purge() // 8
		s.put("n", "1")
		s.failed(putRequest("leased", "1", 7)) // the lease is not there, nor will it be
		s.grant(7)
		s.wrote(putRequest("leased", "1", 7))
		s.put("end", "1")
	}, sound: "from 8, applied 4"}.check(t)
}
