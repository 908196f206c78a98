package compare_test

import (
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func newScript(version string) *clustertest.Script { return clustertest.NewScript(version) }

// withAuth has the users root and app, app allowed below /app/, and auth on.
func withAuth(s *clustertest.Script) *clustertest.Script {
	s.EnableAuth()
	return s
}

func put(key, value string, lease int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease}}
}

func grantLease(id, ttl int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: id, TTL: ttl}}
}

func revokeLease(id int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: id}}
}

// as makes a step of a request by a user through a member.
func as(user string, by int, r *pb.InternalRaftRequest, skip ...int) clustertest.Step {
	return clustertest.Step{User: user, By: by, Req: r, Skip: skip}
}

// told is what a diagnosis must say.
type told struct {
	class, cause, certainty string
	best                    []string
	// violated and holds are checks, causes further causes that are named, absent causes that must not be.
	violated, holds, causes, absent []string
}

// diagnoseScript writes the script's dirs, diagnoses them and proves that they are unchanged.
func diagnoseScript(t *testing.T, s *clustertest.Script, spoils ...spoil) *compare.Report {
	t.Helper()
	dirs := s.Write(t, t.TempDir())
	for i, sp := range spoils {
		if sp != nil {
			sp(t, dirs[i]+"/member")
		}
	}
	evidencetest.Unchanged(t, dirs...)
	r := diagnose(t, synthSpecs(dirs))
	everyFindingHasEvidence(t, r)
	return r
}

func (want told) check(t *testing.T, r *compare.Report) {
	t.Helper()
	v := r.Verdict
	cause, certainty := "", ""
	if v.Cause != nil {
		cause, certainty = string(*v.Cause), string(*v.Certainty)
	}
	if string(v.Class) != want.class || cause != want.cause || want.certainty != "" && certainty != want.certainty {
		t.Errorf("%s %q %q, want %s %q %q: %s", v.Class, cause, certainty, want.class, want.cause, want.certainty,
			v.Summary)
	}
	if want.best != nil && !slices.Equal(slices.Sorted(slices.Values(r.Best.Members)), want.best) {
		t.Errorf("best %v, want %v: %s", r.Best.Members, want.best, r.Best.Why)
	}
	for _, id := range want.violated {
		if got := outcome(r, id); got != check.Violated {
			t.Errorf("%s %s, want violated", id, got)
		}
	}
	for _, id := range want.holds {
		if got := outcome(r, id); got == check.Violated {
			t.Errorf("%s is violated: %+v", id, findings(r, "", id)[0])
		}
	}
	names := func(id string) bool {
		return slices.ContainsFunc(r.Causes, func(c compare.Cause) bool { return string(c.ID) == id })
	}
	for _, id := range want.causes {
		if !names(id) {
			t.Errorf("cause %s is not named: %+v", id, r.Causes)
		}
	}
	for _, id := range want.absent {
		if names(id) {
			t.Errorf("cause %s is named", id)
		}
	}
}

// TestScriptIsHealthy: a script in which nobody skips anything, of every line, is a healthy cluster.
func TestScriptIsHealthy(t *testing.T) {
	for _, version := range []string{"3.2.0", "3.3.0", "3.4.0", "3.5.0", "3.6.0", "3.7.0"} {
		s := withAuth(newScript(version))
		s.Add(as("app", 1, grantLease(7, 60)))
		s.Add(as("app", 1, put("/app/a", "1", 7)))
		s.Add(as("app", 2, put("/app/b", "1", 7)))
		s.Add(as("root", 0, put("/other", "1", 0)))
		s.Add(as("root", 0, &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: 2}}))
		s.Add(as("root", 0, revokeLease(7)))
		s.Add(as("app", 2, put("/app/c", "1", 0)))
		told{class: "healthy", best: []string{"node1", "node2", "node3"},
			holds: []string{"K01", "K02", "K03", "L01", "L02", "A01", "A02"}}.check(t, diagnoseScript(t, s))
	}
}

func deleteKey(key string) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}}
}

// soundScript is a healthy cluster with what no incident holds: checkpoints of remaining TTLs that all members store.
func soundScript() *clustertest.Script {
	s := withAuth(newScript("3.6.0"))
	for i := range s.Members {
		s.Of[i] = clustertest.ScriptMember{Persists: true}
	}
	s.Add(as("app", 0, grantLease(7, 6000)))
	s.Add(as("", 0, &pb.InternalRaftRequest{LeaseCheckpoint: &pb.LeaseCheckpointRequest{Checkpoints: []*pb.LeaseCheckpoint{{ID: 7, Remaining_TTL: 5700}}}}))
	s.Add(as("app", 0, put("/app/a", "1", 7)))
	return s
}
