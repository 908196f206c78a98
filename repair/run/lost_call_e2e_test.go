//go:build e2e

package run

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// onlyClients is a host of which nothing but the clients are used.
type onlyClients struct {
	host
	c *clustertest.Cluster
}

func (h onlyClients) client(*plan.Member) (*clientv3.Client, string, error) {
	return h.c.Client(0), h.c.Endpoint(0), nil
}

// TestE2ERemoveWhileTheLeaderDies: a membership change that is on its way to a leader that dies is lost, and the server
// that passed it on waits for as long as its client does: for ever without a deadline. The step gives up and asks
// again.
func TestE2ERemoveWhileTheLeaderDies(t *testing.T) {
	for _, v := range []string{"3.5.35", "3.6.16"} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			s := &spoiled{T: t, c: clustertest.Start(t, clustertest.Server(t, v), 3, clustertest.Options{}),
				made: map[string]string{}}
			s.put(0, 5)
			s.lead(2)
			st, err := s.c.Client(2).Status(t.Context(), s.c.Endpoint(2))
			ok(t, err)
			j, err := openJournal(filepath.Join(t.TempDir(), "plan.yaml"), "digest", plan.Live, false,
				func(Record, bool) {})
			ok(t, err)
			p := &plan.Plan{Best: plan.Choice{Name: "node1"},
				Members: []plan.Member{{Name: "node1"}, {Name: "node3", ID: dumplog.ID(st.Header.MemberId)}}}
			r := newRunner(&runState{plan: p, j: j, out: &Outcome{}, say: func(string) {}}, onlyClients{c: s.c},
				defaultLimits())
			r.limits.call, r.limits.step = 2*time.Second, time.Minute
			s.c.Kill(2)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begin := time.Now()
			_, err = doRemove(ctx, r, &plan.Step{ID: "x", Member: "node3"})
			ok(t, err)
			t.Log("removed after", time.Since(begin))
		})
	}
}
