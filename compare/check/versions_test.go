package check_test

import (
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestVersionRowHidden: a cluster version that the log sets and the database lacks was removed, unless damage may hide
// it.
func TestVersionRowHidden(t *testing.T) {
	s := clustertest.NewScript("3.6.0")
	s.Add(clustertest.Step{Req: &pb.InternalRaftRequest{
		ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: "3.6.0"}}})
	s.Add(step(0, "", putKey("/a", 0)))
	dirs := s.Write(t, t.TempDir())
	for i, d := range dirs {
		casetest.EditDB(t, d, put("cluster", "clusterVersion", []byte("3.6.0")))
		if i == 1 {
			casetest.EditDB(t, d, remove("cluster", "clusterVersion"))
		}
	}
	for name, c := range map[string]struct {
		damage *dumpdb.DamageError
		want   []string
	}{
		"a sound database":                  {nil, []string{"node2"}},
		"damage in the bucket":              {&dumpdb.DamageError{Bucket: "cluster"}, nil},
		"damage in another one":             {&dumpdb.DamageError{Bucket: "alarm"}, []string{"node2"}},
		"damage in what leads to all of it": {&dumpdb.DamageError{}, nil},
	} {
		in := inputOf(t, dirs...)
		if c.damage != nil {
			in.Members[1].DB.Damage = append(in.Members[1].DB.Damage, c.damage)
		}
		r := run(t, in, "X04")
		if got := accused(r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v: %+v", name, got, c.want, r.Findings)
		}
	}
}
