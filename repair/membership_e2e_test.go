//go:build e2e

package repair

import (
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// trouble is a way to spoil the membership of a real cluster; the stopped data dirs are planned and rehearsed.
type trouble struct {
	name  string
	spoil func(t *testing.T, c *clustertest.Cluster) []string // returns the sources at hand
	// acts are what must be done to members, by action; Remove and Retire alike take a member out of the list.
	acts  map[Action]int
	class string
}

var troubles = []trouble{
	{
		name: "learner that never started", class: "membership", acts: map[Action]int{Remove: 1},
		spoil: func(t *testing.T, c *clustertest.Cluster) []string {
			request(t, c, func(cl *clientv3.Client) error {
				_, err := cl.MemberAddAsLearner(t.Context(), []string{"http://127.121.9.9:2380"})
				return err
			})
			c.Put(0, "behind", "the learner")
			c.WaitEqual()
			c.StopAll()
			return c.Sources()
		},
	},
}

// request retries what strict-reconfig-check refuses until the members have been connected for a while.
func request(t *testing.T, c *clustertest.Cluster, f func(*clientv3.Client) error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err = f(c.Client(0)); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// TestE2ERepairMembership plans and rehearses for clusters whose member list is the trouble.
func TestE2ERepairMembership(t *testing.T) {
	for _, v := range []string{"3.5.35", "3.6.16"} {
		server := clustertest.Server(t, v)
		for _, tr := range troubles {
			t.Run(v+"/"+tr.name, func(t *testing.T) {
				c := clustertest.Start(t, server, 3, clustertest.Options{})
				for range 10 {
					c.Put(0, "k", "v")
				}
				var specs []evidence.Spec
				for _, d := range tr.spoil(t, c) {
					spec, err := evidence.ParseSpec(d)
					if err != nil {
						t.Fatal(err)
					}
					specs = append(specs, spec)
				}
				p, err := NewPlan(t.Context(), specs, PlanOptions{Compare: compare.Options{Version: "test"}})
				if err != nil {
					t.Fatal(err)
				}
				have := map[Action]int{}
				for i := range p.Members {
					have[p.Members[i].Action]++
				}
				for a, n := range tr.acts {
					if have[a] != n || p.Verdict.Class != tr.class {
						t.Errorf("%s: %v, want %d of %s", p.Verdict.Class, have, n, a)
					}
				}
				file := filepath.Join(t.TempDir(), "plan.yaml")
				if err := p.Save(file); err != nil {
					t.Fatal(err)
				}
				o := RunOptions{EtcdBinary: server}
				out, err := Rehearse(t.Context(), file, o)
				mustReach(t, out, err)
				dir := filepath.Join(t.TempDir(), "clone")
				out, err = Apply(t.Context(), file, ApplyOptions{Mode: Clone, Out: dir, RunOptions: o})
				mustReach(t, out, err)
				onlyWhatWasThere(t, p, dir)
			})
		}
	}
}
