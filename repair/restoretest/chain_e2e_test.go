//go:build e2e

package restoretest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain/chaintest"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
	"github.com/etcd-medic/etcd-medic/repair/restoretest"
)

// TestE2EChainServes rebuilds a backup from a chain that followed a running server, and wants it to be level with that
// server, of one history, and to serve on a server of its line.
func TestE2EChainServes(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			server := clustertest.Server(t, line)
			c := clustertest.Start(t, server, 1, clustertest.Options{})
			cli := c.Client(0)
			for i := range 50 {
				c.Put(0, fmt.Sprintf("/app/%02d", i%20), fmt.Sprint("value ", i))
			}
			named := c.Delete(0, "/app/03")
			c.Put(0, "/app/04", "between the question for the revision and the snapshot")
			store := &chaintest.Chain{TB: t, Dir: t.TempDir(), Suffix: ".gz"}
			store.Full(save(t, cli), named)
			from, top := named+1, int64(0)
			for n := range 3 {
				for i := range 30 {
					c.Put(0, fmt.Sprintf("/app/%02d", i%20), fmt.Sprint("later ", n, i))
				}
				c.Txn(0, nil, []clientv3.Op{clientv3.OpPut("/app/03", "again"), clientv3.OpPut("/txn", fmt.Sprint(n)),
					clientv3.OpDelete("/app/05")}, nil)
				top = c.Delete(0, "/app/", clientv3.WithRange("/app/02"))
				store.Delta(chaintest.Watched(t, cli, from, top))
				from = top + 1
			}
			out := filepath.Join(t.TempDir(), "rebuilt.db")
			base := evidence.Spec{Where: store.Dir}
			res, err := rebuild.RunChain(t.Context(), rebuild.Options{Base: base, To: rebuild.Target{Last: true},
				Out: out}, rebuild.ChainsAt(base))
			if err != nil || res.To.Revision != top {
				t.Fatalf("%+v, %v", res, err)
			}
			if hash, _ := c.HashKV(0, top); hash != res.HashKV {
				t.Errorf("HashKV %d, the server says %d", res.HashKV, hash)
			}
			r, err := backup.Verify(t.Context(), evidence.Spec{Where: out}, backup.Options{
				Against: []evidence.Spec{{Name: "live", Where: c.Endpoint(0)}},
				Drill: func(ctx context.Context, m *evidence.Member, r *compare.Report) (*backup.Drill, error) {
					return restoretest.Run(ctx, m, r, restoretest.Options{Dir: t.TempDir(), EtcdBinary: server})
				}})
			if err != nil {
				t.Fatal(err)
			}
			a := r.Backup.Against.(*backup.Against).Compared[0]
			if d := r.Backup.Drill.(*backup.Drill); !d.OK || r.Verdict.Class != "backup-good" ||
				a.SameHistory != check.Holds || a.RevisionsBehind != 0 || a.Missing+a.Differ+a.Extra != 0 {
				t.Errorf("%+v\nagainst %+v\ndrill %+v", r.Verdict, a, d)
			}
		})
	}
}
