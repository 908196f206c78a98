//go:build e2e

package rebuild_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// writeUntilKilled puts keys through a member until all members are killed at one moment, and returns the number of the
// last put that was acknowledged.
func writeUntilKilled(t *testing.T, c *clustertest.Cluster, through, round int, after time.Duration) (acked int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cli := c.Client(through)
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; ; n++ {
			if _, err := cli.Put(ctx, putKey(round, n), "v"); err != nil {
				return
			}
			acked = n
		}
	})
	time.Sleep(after)
	for i := range c.Size() {
		c.Pause(i)
	}
	for i := range c.Size() {
		c.Kill(i)
	}
	cancel()
	wg.Wait()
	return acked
}

func putKey(round, n int) string { return fmt.Sprintf("round%d/%05d", round, n) }

// TestE2EMajority kills clusters in the middle of writes. The logs of all members give every acknowledged write, though
// no source may show the commit of the last ones, and the cluster that starts again has all that was executed.
func TestE2EMajority(t *testing.T) {
	for _, version := range []string{"3.4.3", "3.5.35", "3.7.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{})
			by := 0
			for round := range 4 {
				acked := writeUntilKilled(t, c, round%3, round, time.Duration(150+37*round)*time.Millisecond)
				var logs []evidence.Spec
				for i := range c.Size() {
					logs = append(logs, evidence.Spec{Name: c.Name(i), Where: evidencetest.Copy(t, c.DataDir(i))})
				}
				out := t.TempDir() + "/rebuilt.db"
				res, err := run(t, rebuild.Options{Logs: logs, To: rebuild.Target{Last: true}, Out: out})
				if err != nil {
					t.Fatal(err)
				}
				if res.ByMajority != "" {
					by++
				}
				keys := liveKeys(t, out)
				for n := 1; n <= acked; n++ {
					if !keys[putKey(round, n)] {
						t.Errorf("round %d: put %d of %d was acknowledged and is missing: %+v", round, n, acked, res)
						break
					}
				}
				t.Logf("round %d: %d puts, up to entry %d: %s", round, acked, res.To.Index, res.ByMajority)
				for i := range c.Size() {
					c.StartProcess(i)
				}
				c.WaitServing(0)
				hasAll(t, c, keys)
			}
			if by == 0 {
				t.Error("each time a source showed the commit of the last entry")
			}
		})
	}
}

// liveKeys are the live keys of a database.
func liveKeys(t *testing.T, file string) map[string]bool {
	t.Helper()
	db, err := dumpdb.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // only read
	keys := map[string]bool{}
	for r, err := range db.Query(t.Context(), dumpdb.Query{Live: true}) {
		if err != nil {
			t.Fatal(err)
		}
		keys[string(r.KV.Key)] = true
	}
	return keys
}

// hasAll wants a cluster to have these keys.
func hasAll(t *testing.T, c *clustertest.Cluster, keys map[string]bool) {
	t.Helper()
	r, err := c.Client(0).Get(t.Context(), "round", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, k := range r.Kvs {
		have[string(k.Key)] = true
	}
	for k := range keys {
		if !have[k] {
			t.Errorf("%s was executed, and the cluster does not have it", k)
		}
	}
}
