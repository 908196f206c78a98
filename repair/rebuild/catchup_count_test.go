package rebuild_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestCatchUpCounts: of two voters, one log proves the entries up to its commit index. Later ones may have been
// acknowledged and are counted as not proven; committed ones after the end of the log are counted as missing. Entries
// that change nothing that a restore contains are not counted.
func TestCatchUpCounts(t *testing.T) {
	const applied, end = 10, 20 // the entries 3 to 20 are puts, but for 11 and 19
	for commit, want := range map[uint64]rebuild.CaughtUp{
		applied: {ConsistentIndex: applied, Commit: applied, Unproven: 8},
		11:      {ConsistentIndex: applied, Commit: 11, Unproven: 8},
		12:      {ConsistentIndex: applied, Commit: 12, Unproven: 7, Executed: 1},
		18:      {ConsistentIndex: applied, Commit: 18, Unproven: 1, Executed: 7},
		19:      {ConsistentIndex: applied, Commit: 19, Unproven: 1, Executed: 7},
		end:     {ConsistentIndex: applied, Commit: end, Executed: 8},
		end + 3: {ConsistentIndex: applied, Commit: end + 3, Executed: 8, Missing: 3},
	} {
		h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
		h.Found(false, 0xa1, 0xa2)
		h.Member(0xa1, false, true)
		h.Member(0xa2, false, true)
		for i := uint64(3); i <= end; i++ {
			if i == applied+1 || i == end-1 {
				h.Publish(2, i, 0xa1, clustertest.RequestID(0xa1, 1000, i))
				continue
			}
			h.Put(2, i, clustertest.RequestID(0xa1, 1000, i), fmt.Sprintf("k%d", i), "v", i <= applied)
		}
		h.State(2, 0xa1, commit)
		dir := h.Close(applied, 2)
		evidencetest.Unchanged(t, dir)
		up, keys := caughtUp(t, rebuild.CatchUpOptions{Source: evidence.Spec{Where: dir}})
		got := rebuild.CaughtUp{ConsistentIndex: up.ConsistentIndex, Commit: up.Commit, Unproven: up.Unproven,
			Executed: up.Executed, Missing: up.Missing}
		if got != want || keys != 8+int(want.Executed) || up.Whole() != (commit == end) {
			t.Errorf("committed up to %d: %d keys, %+v\nwant %+v", commit, keys, got, want)
		}
		if lacks := "the log lacks entry 21"; (commit > end) != strings.Contains(up.Why, lacks) {
			t.Errorf("committed up to %d: %q", commit, up.Why)
		}
	}
}

// TestCatchUpOfADamagedDatabase: entries cannot be executed on a database that is damaged. They are counted as missing,
// and the reason is that damage.
func TestCatchUpOfADamagedDatabase(t *testing.T) {
	damaged := evidencetest.Copy(t, lagging(t, 3, "3.5.0")[0])
	editDB(t, filepath.Join(damaged, "member", "snap", "db"), func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("key")).Put(dumpdb.Rev{Main: 5, Sub: 1}.Bytes(), []byte{0xff})
	})
	up, err := rebuild.CatchUp(ctx(), rebuild.CatchUpOptions{Source: evidence.Spec{Where: damaged}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = up.Close() })
	if up.Missing != 10 || up.Executed != 0 || up.Whole() || !strings.Contains(up.Why, "the base is damaged") ||
		up.DB != filepath.Join(damaged, "member", "snap", "db") {
		t.Errorf("%+v", up)
	}
}
