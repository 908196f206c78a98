package check_test

import (
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestPasswordsFromLog: a hash that no entry gives the user is wrong on one member and on all alike; a later or refused
// entry is not, and after a restore the log does not show every entry.
func TestPasswordsFromLog(t *testing.T) {
	change := &pb.InternalRaftRequest{AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "carol",
		HashedPassword: addUser("", hash3).AuthUserAdd.HashedPassword}}
	for name, c := range map[string]struct {
		hash     string
		restored bool
		want     check.Outcome
	}{
		"the last one":              {hash3, false, check.Holds},
		"the one before":            {hash1, false, check.Holds},
		"one of no entry":           {hash2, false, check.Violated},
		"one from before a restore": {hash2, true, check.NotChecked},
	} {
		s := scripted("3.6.0")
		s.Add(step(0, "root", change))
		dirs := s.Write(t, t.TempDir())
		for _, d := range dirs {
			casetest.EditDB(t, d, user("carol", c.hash))
		}
		for _, sources := range [][]string{dirs, dirs[:1]} {
			in := inputOf(t, sources...)
			for _, m := range in.Members {
				if c.restored {
					m.WAL.Summary.Start = dumplog.StartRestore
				}
			}
			r := run(t, in, "A10")
			if r.Outcome != c.want || c.want == check.Violated && len(accused(r)) != len(sources) {
				t.Errorf("%s, %d sources: %s %v %s", name, len(sources), r.Outcome, accused(r), r.Reason)
			}
		}
	}
	dirs := scripted("3.6.0").Write(t, t.TempDir())
	casetest.EditDB(t, dirs[1], user("carol", hash2))
	if r := run(t, inputOf(t, dirs...), "A10"); !slices.Equal(accused(r), []string{"node2"}) {
		t.Errorf("one member: %s %v", r.Outcome, accused(r))
	}
}
