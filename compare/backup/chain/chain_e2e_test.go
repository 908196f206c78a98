//go:build e2e

package chain_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain/chaintest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestE2EChain follows running servers of several lines as etcd-backup-restore does: a snapshot named by a revision
// that was asked for before it, and the watch from there on, with transactions, deletes, leases that expire and
// compactions. The chain serves up to the server's own revision; with any one delta taken away it does not.
func TestE2EChain(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, clustertest.Server(t, line), 1, clustertest.Options{})
			cli := c.Client(0)
			work(t, c, cli, 40)
			c.Put(0, "/before", "x")
			// its revision is asked for, then two more writes come before the snapshot
			named := c.Put(0, "/before", "y")
			c.Put(0, "/between", "1")
			c.Delete(0, "/between")
			store := &chaintest.Chain{TB: t, Dir: t.TempDir(), Suffix: ".gz"}
			store.Full(snapshot(t, cli), named)
			from := named + 1
			var deltas []string
			for range 3 {
				work(t, c, cli, 30)
				top := c.Put(0, "/mark", fmt.Sprint(from))
				deltas = append(deltas, store.Delta(chaintest.Watched(t, cli, from, top)))
				from = top + 1
				if _, err := cli.Compact(t.Context(), top-5); err != nil {
					t.Fatal(err)
				}
			}
			r := verify(t, store.Dir)
			if !r.Serves() || r.Revision != from-1 || r.FullRevision != named+2 || len(r.Deltas) != 3 {
				t.Fatalf("%+v", r)
			}
			for i, d := range deltas {
				hidden := filepath.Join(t.TempDir(), filepath.Base(d))
				if err := os.Rename(d, hidden); err != nil {
					t.Fatal(err)
				}
				r := verify(t, store.Dir)
				if last := i == len(deltas)-1; r.Serves() != last || !last && r.Faults[0].Kind != chain.Gap {
					t.Errorf("without %s: %+v", filepath.Base(d), r)
				}
				if err := os.Rename(hidden, d); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// work is a mix of everything that makes events.
func work(t *testing.T, c *clustertest.Cluster, cli *clientv3.Client, n int) {
	t.Helper()
	lease, err := cli.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		key := fmt.Sprintf("/app/%02d", i%7)
		switch i % 5 {
		case 0:
			c.Put(0, "/leased/"+fmt.Sprint(i), "x", clientv3.WithLease(lease.ID))
		case 1:
			c.Txn(0, nil, []clientv3.Op{clientv3.OpPut(key, "a"), clientv3.OpPut("/other"+key, "b"),
				clientv3.OpDelete("/app/6")}, nil)
		case 2:
			c.Delete(0, key)
		default:
			c.Put(0, key, strings.Repeat("v", i))
		}
	}
	if _, err := cli.Revoke(t.Context(), lease.ID); err != nil {
		t.Fatal(err)
	}
}

// snapshot saves one with etcdctl, and asks etcdutl whether it is one.
func snapshot(t *testing.T, cli *clientv3.Client) string {
	t.Helper()
	bin := filepath.Dir(clustertest.Server(t, "3.6.16"))
	path := filepath.Join(t.TempDir(), "snapshot.db")
	for _, args := range [][]string{{"etcdctl-3.6", "--endpoints", cli.Endpoints()[0], "snapshot", "save", path},
		{"etcdutl-3.6", "snapshot", "status", path}} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, args[0]), args[1:]...)
		cmd.WaitDelay = time.Minute
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if n, err := io.Copy(io.Discard, f); err != nil || n%512 != 32 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	return path
}
