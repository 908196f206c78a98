package cause_test

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

func txn(ops ...*pb.RequestOp) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: ops}}
}

func nested(ops ...*pb.RequestOp) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: ops}}}
}

func putOp(p *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: p}}
}

// TestRightsBeyond: inner operations that reached keys without permission, and those that had it or were refused.
func TestRightsBeyond(t *testing.T) {
	const id = "rbac-bypass-evidence"
	other, mine := &pb.PutRequest{Key: []byte("/other"), Value: []byte("x")},
		&pb.PutRequest{Key: []byte("/app/x"), Value: []byte("x")}
	readBack := &pb.PutRequest{Key: []byte("/w"), Value: []byte("x"), PrevKv: true}
	shared := &pb.PutRequest{Key: []byte("/app/s"), Value: []byte("x"), Lease: 9}
	del := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("/kept")}}}
	for name, c := range map[string]struct {
		step clustertest.Step
		how  string
	}{
		"nested put":          {as("app", 1, txn(putOp(mine), nested(putOp(other)))), "put in a nested transaction"},
		"nested twice":        {as("app", 1, txn(nested(nested(putOp(other))))), "put in a nested transaction"},
		"nested delete":       {as("app", 1, txn(nested(del))), "delete in a nested transaction"},
		"previous value":      {as("app", 1, txn(putOp(readBack))), "read of the previous value"},
		"lease of others":     {as("app", 1, txn(putOp(shared))), "shares the lease"},
		"nested with right":   {as("app", 1, txn(nested(putOp(mine)))), ""},
		"by root":             {as("root", 1, txn(nested(putOp(other)), putOp(readBack))), ""},
		"refused everywhere":  {as("app", 1, txn(nested(putOp(other))), 0, 1, 2), ""},
		"refused and no more": {as("app", 1, txn(putOp(mine), nested(putOp(other))), 0, 1, 2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := withAuth(newScript("3.5.0"))
			s.Add(as("root", 0, &pb.InternalRaftRequest{AuthRoleGrantPermission: &pb.AuthRoleGrantPermissionRequest{Name: "app", Perm: &authpb.Permission{PermType: authpb.WRITE, Key: []byte("/w")}}}))
			s.Add(as("root", 0, grantLease(9, 600)))
			s.Add(as("root", 0, put("/leased", "1", 9)))
			s.Add(as("root", 0, put("/kept", "1", 0)))
			s.Add(c.step)
			s.Add(as("app", 2, put("/app/after", "1", 0)))
			r := diagnoseScript(t, s)
			if c.how == "" {
				told{class: "healthy", absent: []string{id}, holds: []string{"A07"}, best: all3}.check(t, r)
				return
			}
			told{class: "healthy", causes: []string{id}, violated: []string{"A07"}, best: all3}.check(t, r)
			if f := findings(r, "", "A07"); len(f[0].Evidence) != 1 ||
				!strings.Contains(f[0].Evidence[0].Observed, c.how) {
				t.Errorf("%+v, want %s", f[0].Evidence, c.how)
			}
		})
	}
}

// TestPermissionCache builds members whose permission cache was empty after a start or a received snapshot: they
// dropped what users other than root wrote until auth changed.
func TestPermissionCache(t *testing.T) {
	const start, snapshot, other = "auth-cache-empty-after-start", "auth-cache-empty-after-snapshot",
		"unexplained-first-divergence"
	change := &pb.InternalRaftRequest{AuthRoleGrantPermission: &pb.AuthRoleGrantPermissionRequest{Name: "app",
		Perm: &authpb.Permission{PermType: authpb.READWRITE, Key: []byte("/more/"), RangeEnd: []byte("/more0")}}}
	script := func(version string, restart bool, tail ...clustertest.Step) *clustertest.Script {
		s := withAuth(newScript(version))
		for i := range 4 {
			s.Add(as("app", i%2, put("/app/before", string(rune('a'+i)), 0)))
		}
		if restart {
			s.Start(2)
		}
		for _, st := range tail {
			s.Add(st)
		}
		s.Add(as("root", 0, change))
		s.Add(as("app", 1, put("/app/end", "1", 0)))
		s.Add(as("root", 1, put("/end", "1", 0)))
		return s
	}
	dropped := []clustertest.Step{as("app", 0, put("/app/a", "1", 0), 2), as("root", 0, put("/r", "1", 0)),
		as("app", 1, put("/app/b", "1", 0), 2), as("root", 0, put("/r", "2", 0))}
	through := append([]clustertest.Step{dropped[0], as("app", 1, put("/app/through", "1", 0))}, dropped[1:]...)
	root := append([]clustertest.Step{as("root", 1, put("/lost", "1", 0), 2)}, dropped...)
	received := func(version string) *clustertest.Script {
		s := script(version, false, dropped...)
		s.Of[2] = clustertest.ScriptMember{LogUntil: 13, SnapshotAt: 16}
		return s
	}
	for name, c := range map[string]struct {
		script *clustertest.Script
		cause  string
	}{
		"after a start":                {script("3.4.0", true, dropped...), start},
		"without a start":              {script("3.4.0", false, dropped...), other},
		"a later write took effect":    {script("3.4.0", true, through...), other},
		"a write of root is missing":   {script("3.4.0", true, root...), other},
		"after a start of 3.3":         {script("3.3.0", true, dropped...), other},
		"after a start of 3.6":         {script("3.6.0", true, dropped...), other},
		"after a snapshot":             {received("3.4.0"), snapshot},
		"after a snapshot of 3.5":      {received("3.5.0"), snapshot},
		"after a snapshot of 3.6":      {received("3.6.0"), other},
		"after a start of 3.5 at once": {script("3.5.0", true, dropped...), other},
	} {
		t.Run(name, func(t *testing.T) {
			want := told{class: "data-divergence", cause: c.cause, best: []string{"node1", "node2"},
				violated: []string{"K01", "K03"}, holds: []string{"A01", "A02", "A03", "A04", "W01", "R01"}}
			if c.cause != other {
				want.certainty = "strong"
			}
			want.check(t, diagnoseScript(t, c.script))
		})
	}
}
