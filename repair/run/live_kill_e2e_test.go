//go:build e2e

package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

// hook is what an operator would write, with the test's own hands behind it: it leaves a file with what it was told,
// and waits for the answer.
const hook = `set -e; r=$(mktemp "$HANDS/tmp.XXXXXX")
echo "$ETCD_MEDIC_ACTION $ETCD_MEDIC_MEMBER_NAME $ETCD_MEDIC_INITIAL_CLUSTER_STATE $ETCD_MEDIC_INITIAL_CLUSTER" > "$r"
test -n "$ETCD_MEDIC_MEMBER_ID" && test "$ETCD_MEDIC_OLD_MEMBER_ID" != "" && test -n "$ETCD_MEDIC_PEER_URLS"
mv "$r" "$r.ask"; while [ ! -e "$r.done" ]; do sleep 0.05; done`

// serve does what hooks ask for.
func serve(ctx context.Context, t *testing.T, c *lab.Cluster, dir string) {
	hands := c.Live().HostActions
	for ctx.Err() == nil {
		asks, _ := filepath.Glob(filepath.Join(dir, "*.ask"))
		for _, a := range asks {
			b, err := os.ReadFile(a)
			if err != nil {
				t.Error(err)
				return
			}
			f := strings.Fields(string(b))
			s := run.HostStep{Action: f[0], Member: &plan.Member{Name: f[1]}}
			if len(f) == 4 && f[2] == "existing" {
				s.InitialCluster = f[3]
			}
			if err := hands(ctx, s); err != nil && ctx.Err() == nil {
				t.Errorf("%q: %v", b, err)
			}
			_ = os.Rename(a, strings.TrimSuffix(a, ".ask")+".done")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestE2ELiveKilledAtEveryPoint repairs a running cluster under write load, through shell hooks, by a process that is
// killed with SIGKILL before and after each line of its journal; the next one goes on. No write that the best member
// acknowledged meanwhile is missing. Each shard repairs a cluster of its own and is killed in every third step.
func TestE2ELiveKilledAtEveryPoint(t *testing.T) {
	const shards = 3
	for _, version := range []string{"3.5.35", "3.6.16"} {
		for shard := range shards {
			t.Run(fmt.Sprintf("%s/%d", version, shard), func(t *testing.T) { liveKilled(t, version, shard, shards) })
		}
	}
}

func liveKilled(t *testing.T, version string, shard, shards int) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	server, err := node.External(ctx, clustertest.Server(t, version))
	if err != nil {
		t.Fatal(err)
	}
	pr := plannedRepair(ctx, t, server, plan.Options{})
	c, p, file, hands := pr.c, pr.plan, pr.file, filepath.Join(pr.dir, "hands")
	if err := os.Mkdir(hands, 0o700); err != nil {
		t.Fatal(err)
	}
	go serve(ctx, t, c, hands)
	w := load(ctx, t, c, p.Best.Name)
	o := c.Live()
	job := run.VictimJob{File: file, Mode: plan.Live, Endpoints: o.Endpoints, CACert: o.CACert, Cert: o.Cert,
		Key: o.Key, Hook: hook, Shard: shard, Shards: shards}
	points := run.KillEverywhere(t, job, "HANDS="+hands)
	acknowledged := w.stop()
	t.Logf("killed %d times, %d writes acknowledged meanwhile", len(points), len(acknowledged))
	job.WantShard(t, points, run.StepIDs(p, plan.Live))
	allThere(ctx, t, c, acknowledged)
	st, err := run.Status(file)
	if err != nil || len(st.Runs) != 1 || st.Runs[0].State != "reached" {
		t.Errorf("%+v, %v", st, err)
	}
	if err := c.StopAll(ctx); err != nil {
		t.Fatal(err)
	}
	wantHealthy(t, c.DataDirs())
}
