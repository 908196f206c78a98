//go:build e2e

package repair_test

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
	"github.com/etcd-medic/etcd-medic/repair"
)

// TestE2EOnlyHeld: writes go on through the bad member between its snapshot and its stop, and it is ended with or without a chance to write its
// database. What only it acknowledged is named at the end, and the script gives it to the cluster.
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

func onlyHeld(ctx context.Context, t *testing.T, server node.Server) {
	p := plannedRepair(ctx, t, server, repair.PlanOptions{})
	live := p.c.Live()
	live.DataDirs = map[string]string{}
	for _, d := range p.c.DataDirs() {
		name, dir, _ := strings.Cut(d, "=")
		live.DataDirs[name] = dir
	}
	act, late := live.Hands, 0
	live.Hands = func(ctx context.Context, s repair.HostStep) error {
		if s.Action == "stop" && s.Member.Name == "node2" { // after its snapshot
			n, err := p.c.Write(ctx, 1, "/late/", 7)
			if late = n; err != nil {
				return err
			}
		}
		return act(ctx, s)
	}
	out, err := repair.Apply(ctx, p.file, repair.ApplyOptions{Mode: repair.Live, Live: live})
	if err != nil || !out.Reached {
		t.Fatalf("%v: %+v", err, out)
	}
	cli, err := p.c.Client(0)
	if err != nil {
		t.Fatal(err)
	}
	var node2 *repair.OnlyHeld
	for i := range out.Only {
		if o := &out.Only[i]; o.Member == "node2" {
			node2 = o
		} else if o.Keys > 0 || o.Unknown != "" {
			t.Errorf("%+v", o)
		}
	}
	if node2 == nil {
		t.Fatalf("nothing is said of node2: %+v", out.Only)
	}
	t.Log(node2.Text())
	missing := 0
	for k := range late {
		r, err := cli.Get(ctx, fmt.Sprintf("/late/%04d", k))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Kvs) == 0 {
			missing++
		}
	}
	if late != 7 || missing == 0 {
		t.Fatalf("%d writes were acknowledged by node2, %d are missing: the test shows nothing", late, missing)
	}
	script, err := os.ReadFile(node2.Script)
	if err != nil || node2.Keys != missing || strings.Count(string(script), "/late/") != missing || !strings.HasPrefix(filepath.Base(node2.Script), filepath.Base(p.file)) {
		t.Errorf("%d writes are missing, said is %s\n%s (%v)", missing, node2.Text(), script, err)
	}
}
