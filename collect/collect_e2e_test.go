//go:build e2e

package collect_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/collect"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// rounds is how many times all three members are collected; COLLECT_ROUNDS asks for more.
func rounds(t *testing.T) int {
	if v := os.Getenv("COLLECT_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("COLLECT_ROUNDS=%s", v)
		}
		return n
	}
	return 3
}

// load writes, deletes, grants and compacts through one member until the returned function is called.
func load(t *testing.T, cli *clientv3.Client) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(5 * time.Millisecond) // a load that leaves the machine to others
				key := fmt.Sprintf("k/%d/%d", w, n%50)
				r, err := cli.Put(ctx, key, fmt.Sprintf("%0200d", n))
				if err == nil && n%7 == 0 {
					_, _ = cli.Delete(ctx, key)
				}
				if err == nil && n%60 == 59 {
					_, _ = cli.Compact(ctx, r.Header.Revision-20)
				}
				if n%25 == 0 {
					if l, err := cli.Grant(ctx, 60); err == nil {
						_, _ = cli.Put(ctx, "leased", "x", clientv3.WithLease(l.ID))
						_, _ = cli.Revoke(ctx, l.ID)
					}
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// TestE2ECollect copies the members of a cluster that is written to, whose logs are purged and whose histories are
// compacted. Every set of copies must be healthy, and its members' logs purged.
func TestE2ECollect(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{SnapshotCount: 40,
				Args: []string{"--max-wals=2", "--max-snapshots=2", "--heartbeat-interval=200",
					"--election-timeout=2000"}, Env: []string{"TEST_SEGMENT_BYTES=40000"}})
			stop := load(t, c.Client(0))
			defer stop()
			dir := t.TempDir()
			purged, begun := false, time.Now()
			defer func() { // servers purge every 30 seconds; Debian's has segments of full size
				if !purged && time.Since(begun) > 2*time.Minute && line != "3.4.23" {
					t.Error("no log was purged: the case is not made")
				}
			}()
			for n := range rounds(t) {
				time.Sleep(time.Second)
				var specs []evidence.Spec
				for i := range c.Size() {
					out := filepath.Join(dir, fmt.Sprintf("%s-%d.tar.zst", c.Name(i), n))
					m, err := collect.Run(context.Background(),
						collect.Options{DataDir: c.DataDir(i), Endpoint: c.Endpoint(i), Out: out, Rate: 20 << 20})
					if err != nil {
						t.Fatalf("round %d, %s: %v", n, c.Name(i), err)
					}
					purged = purged || m.FirstIndex > 1
					specs = append(specs, evidence.Spec{Name: c.Name(i), Where: out})
					t.Logf("round %d, %s: %d to %d, index %d, %d attempts, %v", n, c.Name(i), m.FirstIndex, m.LastIndex,
						m.ConsistentIndex, m.Attempts, m.LeftOut)
					if len(m.Notes) > 0 {
						t.Log(m.Notes)
					}
				}
				healthy(t, specs)
				for _, s := range specs {
					healthy(t, []evidence.Spec{s})
					if err := os.Remove(s.Where); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func healthy(t *testing.T, specs []evidence.Spec) {
	t.Helper()
	r, err := compare.Diagnose(context.Background(), specs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Health != check.Healthy {
		t.Errorf("%d copies: %s: %s", len(specs), r.Verdict.Class, r.Verdict.Summary)
	}
	for _, f := range r.Findings {
		if f.Severity.Rank() > 0 {
			t.Errorf("%d copies: %s %s: %s\n%s", len(specs), f.Severity, f.Check, f.Title, f.Explanation)
		}
	}
}
