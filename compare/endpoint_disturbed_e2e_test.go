//go:build e2e

package compare_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestE2EEndpointsDisturbed: snapshots of members that lag, were just restarted, or are learners, of a cluster with
// leases, compaction and, where auth is on, rights that change. None of it is a difference, and nobody is called a
// member that loses nothing.
func TestE2EEndpointsDisturbed(t *testing.T) {
	for line, auth := range map[string]bool{"3.4.23": true, "3.5.35": false, "3.6.16": true, "3.7.3": false} {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{TLS: true, SnapshotCount: 40,
				Args: []string{"--heartbeat-interval=200", "--election-timeout=2000", "--bcrypt-cost=4"}})
			var o compare.Options
			if auth {
				o.Access.User = c.EnableAuth()
			}
			o.Access.CACert, o.Access.Cert, o.Access.Key = c.Certificates()
			if !auth { // a learner takes no login, and one before 3.5 gives no snapshot
				c.Add(true)
			}
			defer mixed(t, c.Client(0), auth)()
			healthy := 0
			const rounds = 6
			for n := range rounds {
				switch n % 3 {
				case 0:
					c.Pause(2)
					time.Sleep(1500 * time.Millisecond)
					c.Resume(2)
				case 1:
					c.Kill(1)
					c.StartProcess(1)
					c.WaitServing(1)
				}
				if undisturbed(t, c, o) {
					healthy++
				}
			}
			if healthy < rounds/2 {
				t.Errorf("%d of %d diagnoses were conclusive", healthy, rounds)
			}
		})
	}
}

// undisturbed diagnoses the running members and reports whether they are healthy. A member that lags behind the
// compact revision of the others cannot be compared; it is never called diverged.
func undisturbed(t *testing.T, c *clustertest.Cluster, o compare.Options) bool {
	t.Helper()
	var specs []evidence.Spec
	for i := range c.Size() {
		specs = append(specs, evidence.Spec{Name: c.Name(i), Where: c.Endpoint(i)})
	}
	r, err := compare.Diagnose(t.Context(), specs, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	if r.Verdict.Health == check.Unhealthy {
		t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	}
	for _, f := range r.Findings {
		t.Logf("%s %s: %s", f.Severity, f.Check, f.Title)
		if f.Severity.Rank() >= check.Error.Rank() {
			t.Errorf("%s: %s\n%s", f.Check, f.Title, f.Explanation)
		}
	}
	if r.Best != nil && len(r.Best.Lost.Unproven) == 0 {
		t.Errorf("best claims to lose nothing: %+v", r.Best)
	}
	return r.Verdict.Health == check.Healthy
}

// mixed puts, deletes, writes in transactions, grants and revokes leases, compacts and changes rights until the
// returned function is called.
func mixed(t *testing.T, cli *clientv3.Client, auth bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			time.Sleep(5 * time.Millisecond)
			key := fmt.Sprintf("k%d", n%30)
			r, err := cli.Put(ctx, key, fmt.Sprint(n))
			if err == nil && n%25 == 24 {
				_, _ = cli.Compact(ctx, r.Header.Revision-20)
			}
			switch n % 10 {
			case 3:
				_, _ = cli.Delete(ctx, key)
			case 5:
				_, _ = cli.Txn(ctx).If(clientv3.Compare(clientv3.Version(key), ">", 1)).
					Then(clientv3.OpPut(key, "then"), clientv3.OpPut("twin", "then")).Else(clientv3.OpDelete("twin")).Commit()
			case 7:
				if l, err := cli.Grant(ctx, 2); err == nil { // some expire
					_, _ = cli.Put(ctx, fmt.Sprintf("leased%d", n%3), "x", clientv3.WithLease(l.ID))
					if n%20 == 7 {
						_, _ = cli.Revoke(ctx, l.ID)
					}
				}
			}
			if auth && n%15 == 14 {
				_, _ = cli.RoleGrantPermission(ctx, "app", key, "", clientv3.PermissionType(clientv3.PermRead))
				_, _ = cli.RoleRevokePermission(ctx, "app", key, "")
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}
