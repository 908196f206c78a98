//go:build e2e

package run_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

// TestE2EOnlyHeld: writes go on between the snapshot of a member that is taken out and its stop. What only such members
// acknowledged is named at the end, and saved as a script.
func TestE2EOnlyHeld(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.6.16"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
			defer cancel()
			server, err := node.External(ctx, clustertest.Server(t, version))
			if err != nil {
				t.Fatal(err)
			}
			onlyHeld(ctx, t, server)
		})
	}
}

// onlyHeld keeps the member that refuses what is written through the others: those have what it lacks, and are taken
// out.
func onlyHeld(ctx context.Context, t *testing.T, server node.Server) {
	p := plannedRepair(ctx, t, server, plan.Options{Best: "node2"})
	live := p.c.Live()
	live.AcceptLost = true
	live.DataDirs = map[string]string{}
	for _, d := range p.c.DataDirs() {
		name, dir, _ := strings.Cut(d, "=")
		live.DataDirs[name] = dir
	}
	act, late := live.HostActions, 0
	live.HostActions = func(ctx context.Context, s run.HostStep) error {
		if s.Action == "stop" && late == 0 { // after its snapshot
			n, err := p.c.Write(ctx, 0, "/late/", 7)
			if late = n; err != nil {
				return err
			}
		}
		return act(ctx, s)
	}
	out, err := run.Apply(ctx, p.file, run.ApplyOptions{Mode: plan.Live, Live: live})
	if err != nil || !out.Reached {
		t.Fatalf("%v: %+v", err, out)
	}
	cli, err := p.c.Client(0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := cli.Get(ctx, "/late/", clientv3.WithPrefix())
	if err != nil || late != 7 || len(r.Kvs) != 0 {
		t.Fatalf("%d writes were acknowledged, the cluster has %v: the test shows nothing (%v)", late, r, err)
	}
	if len(out.Only) != 2 {
		t.Fatalf("%+v", out.Only)
	}
	for i := range out.Only {
		o := &out.Only[i]
		t.Log(o.Text())
		script, err := os.ReadFile(o.Script)
		if err != nil || o.Keys != 7 || strings.Count(string(script), " put -- '/late/") != 7 ||
			!strings.HasPrefix(filepath.Base(o.Script), filepath.Base(p.file)) {
			t.Errorf("%s\n%s (%v)", o.Text(), script, err)
		}
		if !strings.Contains(o.Text(), "held 7 keys when it was stopped: /late/0000, /late/0001, ") || o.Unknown != "" {
			t.Error(o.Text())
		}
	}
}
