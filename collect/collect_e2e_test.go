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

// rounds is how many times all three members are collected at least; COLLECT_ROUNDS asks for more.
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

// load writes values of that size, deletes, grants, changes rights and compacts through one member until the returned
// function is called.
func load(t *testing.T, cli *clientv3.Client, size int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(5 * time.Millisecond) // a load that leaves the machine to others
				key := fmt.Sprintf("k/%d/%d", w, n%50)
				r, err := cli.Put(ctx, key, fmt.Sprintf("%0*d", size, n))
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
				if n%90 == 89 {
					_, _ = cli.RoleGrantPermission(ctx, "app", key, "", clientv3.PermissionType(clientv3.PermRead))
					_, _ = cli.RoleRevokePermission(ctx, "app", key, "")
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// lastPurge is how long a server may take until the first segments of its log are gone; it looks every 30 seconds.
const lastPurge = 10 * time.Minute

// TestE2ECollect copies the members of clusters with TLS and auth that are written to, whose histories are compacted
// and whose logs are purged, until that was seen. Every copy, and every set of copies, must be healthy.
func TestE2ECollect(t *testing.T) {
	for line, size := range map[string]int{"3.4.3": 200, "3.5.35": 200, "3.6.16": 200, "3.7.3": 200,
		"3.4.23": 32 << 10} { // Debian's server has segments of full size
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			want := rounds(t)
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{TLS: true, SnapshotCount: 40,
				Args: []string{"--max-wals=1", "--max-snapshots=1", "--heartbeat-interval=200",
					"--election-timeout=2000", "--bcrypt-cost=4"}, Env: []string{"TEST_SEGMENT_BYTES=40000"}})
			access := evidence.Access{User: c.EnableAuth()}
			access.CACert, access.Cert, access.Key = c.Certificates()
			defer load(t, c.Client(0), size)()
			dir, begun, firsts := t.TempDir(), time.Now(), map[string]map[uint64]bool{}
			for n := 0; n < want || len(firsts) < c.Size(); n++ {
				if time.Since(begun) > lastPurge && n >= want {
					t.Fatalf("the case is not made: only these logs were purged: %v", firsts)
				}
				time.Sleep(time.Second)
				var specs []evidence.Spec
				for i := range c.Size() {
					out := filepath.Join(dir, fmt.Sprintf("%s-%d.tar.zst", c.Name(i), n))
					m, err := collect.Run(t.Context(), collect.Options{DataDir: c.DataDir(i),
						Endpoints: []string{c.Endpoint(i)}, Access: access, Out: out})
					if err != nil {
						t.Fatalf("round %d, %s: %v", n, c.Name(i), err)
					}
					if m.FirstIndex > 1 {
						if firsts[c.Name(i)] == nil {
							firsts[c.Name(i)] = map[uint64]bool{}
						}
						firsts[c.Name(i)][m.FirstIndex] = true
					}
					specs = append(specs, evidence.Spec{Name: c.Name(i), Where: out})
					t.Logf("round %d, %s: %d to %d, index %d, %d attempts, %v %v", n, c.Name(i), m.FirstIndex,
						m.LastIndex, m.ConsistentIndex, m.Attempts, m.LeftOut, m.Notes)
				}
				healthy(t, specs)
				for _, s := range specs {
					healthy(t, []evidence.Spec{s})
					if err := os.Remove(s.Where); err != nil {
						t.Fatal(err)
					}
				}
				if t.Failed() {
					return
				}
			}
			for name, at := range firsts {
				t.Logf("%s: the log began at %d later places", name, len(at))
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
