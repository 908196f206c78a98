//go:build e2e

package run_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

// TestE2ELiveTokens: with a login by password, a new member of the lines whose servers accept no tokens after they have
// received a database is restarted once, and the repair reaches its goal in minutes.
func TestE2ELiveTokens(t *testing.T) {
	for version, restarts := range map[string]bool{"3.3.18": true, "3.4.3": true, "3.4.23": false, "3.5.0": true} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			server, err := node.External(ctx, clustertest.Server(t, version))
			if err != nil {
				t.Fatal(err)
			}
			pr := plannedAfter(ctx, t, server, plan.Options{}, altered)
			live := pr.c.Live()
			live.User, live.Password = "root", "lab-only"
			out, err := run.Apply(ctx, pr.file, run.ApplyOptions{Mode: plan.Live, Live: live})
			if err != nil || !out.Reached {
				t.Fatalf("reached %v, error %v", out != nil && out.Reached, err)
			}
			said := slices.ContainsFunc(out.Notes, func(n string) bool {
				return strings.Contains(n, "refuses every token")
			})
			if said != restarts {
				t.Errorf("restarted for its tokens: %v, want %v; %q", said, restarts, out.Notes)
			}
			if err := pr.c.StopAll(ctx); err != nil {
				t.Fatal(err)
			}
			wantHealthy(t, pr.c.DataDirs())
		})
	}
}

// altered flips a bit of a value on node2.
func altered(ctx context.Context, t *testing.T, c *lab.Cluster) {
	t.Helper()
	if _, err := c.Write(ctx, 0, "/before/", 120); err != nil {
		t.Fatal(err)
	}
	if err := c.FlipValue(ctx, 1); err != nil {
		t.Fatal(err)
	}
}
