//go:build e2e

package clustertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// TestE2ECluster drives each supported line through what the kit offers, so that a test that uses it can trust it.
func TestE2ECluster(t *testing.T) {
	for _, version := range clustertest.Lines {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // mostly waiting for elections
			c := clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{SnapshotCount: 10})
			r1 := c.Put(0, "a", "1")
			if r2 := c.Put(1, "a", "2"); r2 != r1+1 {
				t.Errorf("revision %d after %d", r2, r1)
			}
			if _, held := c.Txn(2, []clientv3.Cmp{clientv3.Compare(clientv3.Value("a"), "=", "2")},
				[]clientv3.Op{clientv3.OpPut("b", "1"), clientv3.OpDelete("a")}, nil); !held {
				t.Error("the compare does not hold")
			}
			c.Kill(2)
			c.Leader()
			for range 20 {
				c.Put(0, "c", "x")
			}
			c.Restart(2)
			_, revision := c.WaitEqual()
			h, _ := c.HashKV(0, revision)
			for i := range c.Size() {
				if other, at := c.HashKV(i, revision); other != h || at != revision {
					t.Errorf("%s: hash %x at %d, want %x at %d", c.Name(i), other, at, h, revision)
				}
			}
			leader := c.Leader()
			c.Stop(leader)
			if next := c.Leader(); next == leader {
				t.Errorf("%s still leads after its end", c.Name(leader))
			}
			c.Restart(leader)
			learner := c.Add(true)
			c.WaitEqual()
			if c.Size() != 4 || learner != 3 {
				t.Errorf("size %d, learner %d", c.Size(), learner)
			}
			for _, s := range c.Sources() {
				_, dir, _ := strings.Cut(s, "=")
				if segs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal")); err != nil ||
					len(segs) == 0 {
					t.Errorf("%s: no segment, %v", s, err)
				}
				if _, err := os.Stat(filepath.Join(dir, "member", "snap", "db")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
