package cause_test

import (
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

const revokeWithoutToken = "lease-revoke-without-token-mixed-32-33"

// withoutUser is what a rolling upgrade from 3.2 to 3.3 left: revokes without a user that the 3.3 members refused.
// node1 still runs 3.2.
func withoutUser(version string, refused ...int) *clustertest.Script {
	s := withAuth(newScript(version))
	for id := int64(0x70); id < 0x73; id++ {
		s.Add(as("app", 0, grantLease(id, 60)))
		s.Add(as("app", 1, put("/app/leased/"+string(rune('a'+id-0x70)), "x", id)))
		s.Add(as("app", 2, put("/app/second/"+string(rune('a'+id-0x70)), "x", id)))
	}
	s.Add(as("", 0, revokeLease(0x71), refused...))
	s.Add(as("app", 0, put("/app/after", "1", 0)))
	s.Add(as("app", 1, put("/app/after", "2", 0)))
	s.Add(as("", 0, revokeLease(0x72), refused...))
	s.Add(as("app", 1, put("/app/after", "3", 0)))
	return s
}

func TestLeaseRevokeWithoutUser(t *testing.T) {
	t.Run("two refuse", func(t *testing.T) {
		r := diagnoseScript(t, withoutUser("3.2.0", 1, 2))
		told{class: "data-divergence", cause: revokeWithoutToken, certainty: "strong", best: []string{"node1"},
			violated: []string{"L03", "L01", "K01", "K02"},
			holds:    []string{"K03", "K06", "A01", "A02", "A04", "R01", "W01", "L02"}}.check(t, r)
		f := findings(r, "", "L03")[0]
		if !slices.Equal(f.Members, []string{"node2", "node3"}) || !strings.Contains(text(f), "/app/leased/b") ||
			!strings.Contains(text(f), `lease still in its database`) {
			t.Error(text(f))
		}
		if b := r.Verdict.FirstBreak; b.Check != "L03" || b.Bucket != "lease" || string(b.Key) != "71" {
			t.Errorf("first break %+v", b)
		}
		if row := r.Best.Ranking[2]; row.Lacks.CommittedEntries != 2 || row.Lacks.Keys != 4 {
			t.Errorf("lacks %+v", row.Lacks)
		}
	})
	t.Run("one refuses", func(t *testing.T) {
		told{class: "data-divergence", cause: revokeWithoutToken, best: []string{"node1", "node2"}}.check(t,
			diagnoseScript(t, withoutUser("3.3.0", 2)))
	})
	t.Run("revoked again after the upgrade", func(t *testing.T) {
		s := withoutUser("3.3.0", 1, 2)
		for id := int64(0x71); id < 0x73; id++ {
			s.Add(as("root", 1, revokeLease(id), 0))
		}
		s.Add(as("app", 1, put("/app/after", "4", 0)))
		told{class: "data-divergence", cause: revokeWithoutToken, best: []string{"node1"},
			holds: []string{"K03"}}.check(t, diagnoseScript(t, s))
	})
	t.Run("upgraded to 3.5 since", func(t *testing.T) {
		s := withoutUser("3.5.0", 1, 2)
		s.Add(as("", 0, &pb.InternalRaftRequest{ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: "3.5.0"}}))
		// what ran then is not known
		told{class: "data-divergence", cause: "unexplained-first-divergence",
			absent: []string{revokeWithoutToken}}.check(t, diagnoseScript(t, s))
		s = withAuth(newScript("3.5.0"))
		s.Add(as("", 0, &pb.InternalRaftRequest{ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: "3.2.0"}}))
		s.Add(as("app", 0, grantLease(0x70, 60)))
		s.Add(as("app", 1, put("/app/a", "x", 0x70)))
		s.Add(as("", 0, revokeLease(0x70), 1, 2))
		s.Add(as("", 0, &pb.InternalRaftRequest{ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: "3.5.0"}}))
		s.Add(as("app", 1, put("/app/b", "x", 0)))
		told{class: "data-divergence", cause: revokeWithoutToken, best: []string{"node1"}}.check(t,
			diagnoseScript(t, s))
	})
	t.Run("a delete follows the refused revoke", func(t *testing.T) {
		s := withAuth(newScript("3.3.0"))
		s.Add(as("app", 0, grantLease(0x70, 60)))
		s.Add(as("app", 1, put("/app/a", "x", 0x70)))
		s.Add(as("app", 1, put("/app/b", "x", 0)))
		s.Add(as("", 0, revokeLease(0x70), 1, 2))
		s.Add(as("app", 0, deleteKey("/app/b")))
		told{class: "data-divergence", cause: revokeWithoutToken, best: []string{"node1"},
			holds: []string{"K03"}}.check(t, diagnoseScript(t, s))
	})
}

// TestLikeRevokeWithoutUser: what looks like it and is not.
func TestLikeRevokeWithoutUser(t *testing.T) {
	t.Run("all apply", func(t *testing.T) {
		told{class: "healthy", holds: []string{"L03"}, absent: []string{revokeWithoutToken}}.check(t,
			diagnoseScript(t, withoutUser("3.2.0")))
	})
	t.Run("no such release", func(t *testing.T) {
		told{class: "data-divergence", cause: "unexplained-first-divergence", violated: []string{"L03"},
			absent: []string{revokeWithoutToken}}.check(t, diagnoseScript(t, withoutUser("3.5.0", 1)))
	})
	t.Run("with a user", func(t *testing.T) {
		s := withAuth(newScript("3.3.0"))
		s.Add(as("app", 0, grantLease(0x70, 60)))
		s.Add(as("app", 1, put("/app/a", "x", 0x70)))
		s.Add(as("root", 0, revokeLease(0x70), 2))
		s.Add(as("app", 1, put("/app/b", "x", 0)))
		told{class: "data-divergence", cause: "unexplained-first-divergence",
			absent: []string{revokeWithoutToken}}.check(t, diagnoseScript(t, s))
	})
	t.Run("another entry came first", func(t *testing.T) {
		s := withAuth(newScript("3.3.0"))
		s.Add(as("app", 0, grantLease(0x70, 60)))
		s.Add(as("app", 1, put("/app/a", "x", 0x70)))
		s.Add(as("app", 0, put("/app/lost", "x", 0), 2))
		s.Add(as("", 0, revokeLease(0x70), 2))
		s.Add(as("app", 1, put("/app/b", "x", 0)))
		told{class: "data-divergence", cause: "unexplained-first-divergence",
			absent: []string{revokeWithoutToken}}.check(t, diagnoseScript(t, s))
	})
}

// TestRevokedByDeposedLeader: right after a change of leader the old one's queue of revokes comes in.
func TestRevokedByDeposedLeader(t *testing.T) {
	const id = "lease-revoked-by-deposed-leader"
	type burst struct {
		version string
		by, n   int
		user    string
		apart   int
		led     bool
	}
	build := func(b burst) *clustertest.Script {
		s := newScript(b.version)
		for i := range s.Members {
			votes := map[uint64]int{3: 1}
			if !b.led {
				votes[2] = 2
			}
			s.Of[i] = clustertest.ScriptMember{Votes: votes}
		}
		for lease := int64(1); lease <= 5; lease++ {
			s.Add(as("", 2, grantLease(lease, 60)))
			s.Add(as("", 2, put("/held/"+string(rune('a'+lease)), "x", lease)))
		}
		s.Add(clustertest.Step{Term: 3, Empty: true})
		for range b.apart {
			s.Add(as("", 1, put("/busy", "x", 0)))
		}
		for lease := int64(1); lease <= int64(b.n); lease++ {
			s.Add(as(b.user, b.by, revokeLease(lease)))
		}
		s.Add(as("", 1, put("/after", "x", 0)))
		return s
	}
	for name, c := range map[string]struct {
		burst
		named bool
	}{
		"old leader":         {burst{version: "3.4.0", by: 0, n: 4, led: true}, true},
		"old leader as root": {burst{version: "3.5.0", by: 0, n: 4, user: "root", led: true}, true},
		"fixed line":         {burst{version: "3.6.0", by: 0, n: 4, led: true}, false},
		"leader":             {burst{version: "3.4.0", by: 1, n: 4, led: true}, false},
		"never led":          {burst{version: "3.4.0", by: 2, n: 4, led: true}, false},
		"two revokes":        {burst{version: "3.4.0", by: 0, n: 2, led: true}, false},
		"by a user":          {burst{version: "3.4.0", by: 0, n: 4, user: "app", led: true}, false},
		"long after":         {burst{version: "3.4.0", by: 0, n: 4, apart: 250, led: true}, false},
		"led by another":     {burst{version: "3.4.0", by: 0, n: 4, led: false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := told{class: "healthy", absent: []string{id}, holds: []string{"L03", "K01"}, best: all3}
			if c.named {
				want.absent, want.causes, want.violated = nil, []string{id}, []string{"L07"}
			}
			want.check(t, diagnoseScript(t, build(c.burst)))
		})
	}
}
