//go:build e2e

package run_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
)

// TestE2ELive repairs running clusters of every line that is still maintained, with TLS and auth on, strict
// reconfiguration checks, and writes going on all the time: none that was acknowledged is missing afterwards.
func TestE2ELive(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.6.16", "3.7.3"} {
		t.Run(version, func(t *testing.T) { liveRepair(t, version) })
	}
}

func liveRepair(t *testing.T, version string) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // 100,010 proposals before 3.6
	defer cancel()
	server, err := node.External(ctx, clustertest.Server(t, version))
	if err != nil {
		t.Fatal(err)
	}
	pr := plannedRepair(ctx, t, server, plan.Options{})
	c, p, file := pr.c, pr.plan, pr.file
	if p.Member("node2").Action != plan.Replace {
		t.Fatalf("node2 is not replaced: %+v", p.Members)
	}
	w := load(ctx, t, c, p.Best.Name)
	out, err := run.Apply(ctx, file, run.ApplyOptions{Mode: plan.Live, Live: c.Live()})
	acknowledged := w.stop()
	if out != nil {
		for _, s := range out.Steps {
			t.Logf("%-28s %-12s %6.2fs %s", s.ID, s.State, s.Seconds, s.Detail)
		}
	}
	if err != nil || !out.Reached {
		t.Fatalf("reached %v, error %v", out != nil && out.Reached, err)
	}
	allThere(ctx, t, c, acknowledged)
	if err := c.StopAll(ctx); err != nil {
		t.Fatal(err)
	}
	wantHealthy(t, c.DataDirs())
}

// broken makes node2 drop what is written through the others.
func broken(ctx context.Context, t *testing.T, c *lab.Cluster) {
	t.Helper()
	if _, err := c.Write(ctx, 0, "/before/", 120); err != nil {
		t.Fatal(err)
	}
	if err := c.RaiseAuth(ctx, 1, 9); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if n, err := c.Write(ctx, i, fmt.Sprintf("/through%d/", i+1), 20); err != nil || n != 20 {
			t.Fatalf("%d of 20 writes through node%d, %v", n, i+1, err)
		}
	}
	st, err := c.Statuses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if st[0].Revision == st[1].Revision || st[0].Revision != st[2].Revision {
		t.Fatalf("the cluster did not diverge as it should: %+v", st)
	}
}

type writer struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	keys   []string
}

// load writes through the best member until it is stopped.
func load(ctx context.Context, t *testing.T, c *lab.Cluster, best string) *writer {
	t.Helper()
	var i int
	if _, err := fmt.Sscanf(best, "node%d", &i); err != nil {
		t.Fatal(err)
	}
	cli, err := c.Client(i - 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &writer{cancel: cancel}
	w.wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			key := fmt.Sprintf("/load/%06d", n)
			// A server loses what is proposed while the leader moves, and answers that after seven seconds; others can
			// be written meanwhile.
			call, done := context.WithTimeout(ctx, time.Second)
			if _, err := cli.Put(call, key, "x"); err == nil {
				w.keys = append(w.keys, key)
			}
			done()
			time.Sleep(2 * time.Millisecond)
		}
	})
	return w
}

func (w *writer) stop() []string {
	w.cancel()
	w.wg.Wait()
	return w.keys
}

func allThere(ctx context.Context, t *testing.T, c *lab.Cluster, keys []string) {
	t.Helper()
	if len(keys) < 50 {
		t.Errorf("only %d writes were acknowledged while the repair ran", len(keys))
	}
	for i := range 3 {
		cli, err := c.Client(i)
		if err != nil {
			t.Fatal(err)
		}
		// all in one read: on a loaded machine a thousand of them take minutes
		r, err := cli.Get(ctx, "/load/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		have, missing := map[string]bool{}, 0
		for _, kv := range r.Kvs {
			have[string(kv.Key)] = true
		}
		for _, k := range keys {
			if !have[k] {
				missing++
			}
		}
		if missing > 0 {
			t.Errorf("node%d lacks %d of %d acknowledged writes", i+1, missing, len(keys))
		}
	}
}

func wantHealthy(t *testing.T, dirs []string) {
	t.Helper()
	var specs []evidence.Spec
	for _, d := range dirs {
		s, err := evidence.ParseSpec(d)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name == "" {
			s.Name = filepath.Base(s.Where)
		}
		specs = append(specs, s)
	}
	r, err := compare.Diagnose(t.Context(), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Health != check.Healthy {
		t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	}
}

func hexOf(id uint64) string { return fmt.Sprintf("%x", id) }
