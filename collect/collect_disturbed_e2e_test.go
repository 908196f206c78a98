//go:build e2e

package collect_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/collect"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestE2ECollectDisturbed copies a member without a pause while it joins with an empty data dir, receives the leader's
// snapshot, is a voter that is killed and started, and is stopped: through its snapshot, and from its file. A copy may
// fail and then leaves no archive; one that is made is never called damaged.
func TestE2ECollectDisturbed(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.6.16"} {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{SnapshotCount: 40,
				Args: []string{"--heartbeat-interval=200", "--election-timeout=2000"}})
			value := strings.Repeat("v", 256<<10)
			for n := range 40 {
				c.Put(0, fmt.Sprintf("big/%d", n), value)
			}
			c.Remove(2)
			c.Kill(2)
			c.Wipe(2)
			for i := range 2 { // a server that was started has only the entries since its last snapshot in memory
				c.Restart(i)
			}
			c.Leader()
			defer load(t, c.Client(0), 200)()

			raw, live := copying(t, c), copying(t, c, c.Endpoint(2))
			c.AddAgain(2)
			for range 3 {
				live.await(t, 2)
				c.Kill(2)
				c.StartProcess(2)
				c.WaitServing(2)
			}
			live.await(t, 1)
			c.Stop(2)
			raw.await(t, 2)
			for _, m := range []*copies{live, raw} {
				m.end()
				t.Logf("%d copies, %d failed", m.good.Load(), m.failed.Load())
			}
		})
	}
}

// copies are made in the background until end is called.
type copies struct {
	good, failed atomic.Int64
	end          func()
}

// await waits for more copies.
func (m *copies) await(t *testing.T, more int64) {
	t.Helper()
	want := m.good.Load() + more
	for until := time.Now().Add(clustertest.Patience); m.good.Load() < want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d copies are missing", want-m.good.Load())
		}
	}
}

// copying copies the third member through an endpoint, or from its file.
func copying(t *testing.T, c *clustertest.Cluster, endpoints ...string) *copies {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	dataDir, name, dir, m := c.DataDir(2), c.Name(2), t.TempDir(), &copies{}
	var wg sync.WaitGroup
	wg.Go(func() {
		last := ""
		for n := 0; ctx.Err() == nil; n++ {
			out := filepath.Join(dir, fmt.Sprintf("%d.tar.zst", n))
			_, err := collect.Run(ctx, collect.Options{DataDir: dataDir, Endpoints: endpoints, Out: out, Name: name})
			left, _ := filepath.Glob(out + "*")
			switch {
			case ctx.Err() != nil:
			case err != nil:
				if m.failed.Add(1); err.Error() != last {
					last = err.Error()
					t.Log(err)
				}
				if len(left) > 0 {
					t.Errorf("%v left %v", err, left)
				}
				time.Sleep(20 * time.Millisecond)
			default:
				m.good.Add(1)
				undamaged(t, out)
			}
		}
	})
	m.end = func() { cancel(); wg.Wait() }
	t.Cleanup(m.end)
	return m
}

func undamaged(t *testing.T, file string) {
	t.Helper()
	r, err := compare.Diagnose(context.Background(), []evidence.Spec{{Where: file}}, compare.Options{})
	if err != nil {
		t.Error(errors.Join(errors.New(file), err))
		return
	}
	if r.Verdict.Health == check.Unhealthy {
		t.Errorf("%s: %s: %s", file, r.Verdict.Class, r.Verdict.Summary)
	}
	for _, f := range r.Findings {
		if f.Severity.Rank() >= check.Error.Rank() {
			t.Errorf("%s: %s %s: %s\n%s", file, f.Severity, f.Check, f.Title, f.Explanation)
		}
	}
}
