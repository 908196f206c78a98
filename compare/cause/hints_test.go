package cause_test

import (
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

func grantMore(prefix string) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{AuthRoleGrantPermission: &pb.AuthRoleGrantPermissionRequest{Name: "app",
		Perm: &authpb.Permission{PermType: authpb.READWRITE, Key: []byte(prefix),
			RangeEnd: []byte(prefix[:len(prefix)-1] + "0")}}}
}

// TestStalePermissions: a member that caught up by a snapshot goes on with the permissions from before it.
func TestStalePermissions(t *testing.T) {
	const id = "auth-cache-stale-after-snapshot"
	script := func(version string, granted, snapshot bool) *clustertest.Script {
		s := withAuth(newScript(version))
		last := s.Add(as("app", 0, put("/app/a", "1", 0)))
		if granted {
			s.Add(as("root", 0, grantMore("/more/")))
		}
		at := s.Add(as("app", 0, put("/app/a", "2", 0)))
		if snapshot {
			s.Of[2] = clustertest.ScriptMember{LogUntil: last, SnapshotAt: at}
		}
		s.Add(as("app", 0, put("/app/b", "1", 0)))
		user, key := "app", "/more/b"
		if !granted {
			key = "/app/more"
		}
		s.Add(as(user, 1, put(key, "1", 0), 2))
		s.Add(as("app", 0, put("/app/b", "2", 0)))
		return s
	}
	for name, c := range map[string]struct {
		script *clustertest.Script
		want   told
	}{
		"3.4": {script("3.4.0", true, true),
			told{class: "data-divergence", cause: id, certainty: "hint", best: []string{"node1", "node2"}}},
		"3.5": {script("3.5.0", true, true),
			told{class: "data-divergence", cause: id, certainty: "hint"}},
		"3.6": {script("3.6.0", true, true),
			told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id}}},
		"no snapshot": {script("3.4.0", true, false),
			told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id}}},
		"nothing was granted": {script("3.4.0", false, true),
			told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id}}},
		"auth changed in time": {withChange(script("3.4.0", true, true)),
			told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id}}},
	} {
		t.Run(name, func(t *testing.T) { c.want.check(t, diagnoseScript(t, c.script)) })
	}
}

// withChange adds a change of auth behind the snapshot and another write that is missing there.
func withChange(s *clustertest.Script) *clustertest.Script {
	s.Add(as("root", 0, grantMore("/other/")))
	s.Add(as("app", 1, put("/more/c", "1", 0), 2))
	s.Add(as("app", 0, put("/app/b", "3", 0)))
	return s
}

// TestDeleteVisibleLate: right behind the delete of a user, one member still applies what that user wrote.
func TestDeleteVisibleLate(t *testing.T) {
	const id = "backend-delete-visible-late"
	script := func(version string, between int) *clustertest.Script {
		s := withAuth(newScript(version))
		s.Add(as("app", 0, put("/app/a", "1", 0)))
		late := as("app", 1, put("/app/late", "1", 0), 0, 2)
		s.Add(as("root", 0, &pb.InternalRaftRequest{AuthUserDelete: &pb.AuthUserDeleteRequest{Name: "app"}}))
		late.AuthRevision = 100 // stamped by a member that had applied the delete, so only the user is missing
		for range between {
			s.Add(as("root", 0, put("/r", "1", 0)))
		}
		s.Add(late)
		s.Add(as("root", 0, put("/r", "2", 0)))
		return s
	}
	told{class: "data-divergence", cause: id, certainty: "hint", violated: []string{"K06"}}.check(t,
		diagnoseScript(t, script("3.5.0", 0)))
	told{class: "data-divergence", cause: id, certainty: "hint", violated: []string{"K06"}}.check(t,
		diagnoseScript(t, script("3.4.0", 2)))
	told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id}}.check(t,
		diagnoseScript(t, script("3.5.0", 40)))
	told{class: "data-divergence", cause: "unexplained-first-divergence", absent: []string{id}}.check(t,
		diagnoseScript(t, script("3.6.0", 0)))
}
