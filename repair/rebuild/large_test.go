package rebuild_test

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestLargeValues: a transaction is in memory until it ends, so one with large values ends earlier. The result is that
// of the server all the same.
func TestLargeValues(t *testing.T) {
	dir := clustertest.Synth{Members: 1, Entries: 40, Keys: 40, Value: 1 << 20}.Write(t, t.TempDir())[0]
	var transactions []uint64
	for _, to := range []rebuild.Target{{Revision: 2}, {Last: true}} {
		out := filepath.Join(t.TempDir(), "out.db")
		res, err := run(t, rebuild.Options{Logs: []evidence.Spec{{Where: dir}}, To: to, Out: out})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Verified) != 1 || !res.Verified[0].Buckets[0].Equal.Certain() {
			t.Errorf("%s: %+v, want the keys of the server", to, res.Verified)
		}
		db, err := dumpdb.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		transactions = append(transactions, db.Meta().Txid)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if more := transactions[1] - transactions[0]; more != 2 {
		t.Errorf("%d transactions more for 40 MiB than for one record, want 2", more)
	}
}
