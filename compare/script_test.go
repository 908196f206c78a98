package compare_test

import (
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// Short names for what scripts are made of.
var (
	as         = clustertest.As
	put        = clustertest.PutRequest
	grantLease = clustertest.GrantRequest
)

// TestScriptIsHealthy: a script in which nobody skips anything, of every line, is a healthy cluster.
func TestScriptIsHealthy(t *testing.T) {
	for _, version := range []string{"3.2.0", "3.3.0", "3.4.0", "3.5.0", "3.6.0", "3.7.0"} {
		s := clustertest.NewScript(version)
		s.EnableAuth()
		s.Add(as("app", 1, grantLease(7, 60)))
		s.Add(as("app", 1, put("/app/a", "1", 7)))
		s.Add(as("app", 2, put("/app/b", "1", 7)))
		s.Add(as("root", 0, put("/other", "1", 0)))
		s.Add(as("root", 0, &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 2}}))
		s.Add(as("root", 0, clustertest.RevokeRequest(7)))
		s.Add(as("app", 2, put("/app/c", "1", 0)))
		dirs := s.Write(t, t.TempDir())
		evidencetest.Unchanged(t, dirs...)
		r := diagnose(t, dirSpecs(dirs))
		if r.Verdict.Class != "healthy" || r.Verdict.Cause != nil {
			t.Errorf("%s: %s %v: %s", version, r.Verdict.Class, r.Verdict.Cause, r.Verdict.Summary)
		}
		if got := best(r); !slices.Equal(got, []string{"node1", "node2", "node3"}) {
			t.Errorf("%s: best %v: %s", version, got, r.Best.Why)
		}
		for _, id := range []string{"K01", "K02", "K03", "L01", "L02", "A01", "A02"} {
			if outcome(r, id) == check.Violated {
				t.Errorf("%s: %s is violated: %+v", version, id, findings(r, "", id)[0])
			}
		}
	}
}

// soundScript is a healthy cluster with what no incident holds: checkpoints of remaining TTLs that all members store.
func soundScript() *clustertest.Script {
	s := clustertest.NewScript("3.6.0")
	s.EnableAuth()
	for i := range s.Members {
		s.Of[i] = clustertest.ScriptMember{Persists: true}
	}
	s.Add(as("app", 0, grantLease(7, 6000)))
	s.Add(as("", 0, &pb.InternalRaftRequest{LeaseCheckpoint: &pb.LeaseCheckpointRequest{
		Checkpoints: []*pb.LeaseCheckpoint{{ID: 7, Remaining_TTL: 5700}}}}))
	s.Add(as("app", 0, put("/app/a", "1", 7)))
	return s
}
