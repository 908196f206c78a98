package check_test

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// grown writes the data dir of one of two members, of which the second was added in the middle of the log, in many
// segments.
func grownLog(t *testing.T, zombie bool) string {
	t.Helper()
	old := wal.SegmentSizeBytes
	defer func() { wal.SegmentSizeBytes = old }()
	wal.SegmentSizeBytes = 2 << 10
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1)
	index := uint64(2)
	put := func(n int) {
		for range n {
			id := clustertest.RequestID(0xa1, 1763000000000, index)
			h.Put(2, index, id, fmt.Sprintf("k%d", index), "a value of some length, so that segments fill up", true)
			index++
		}
		h.State(2, 0xa1, index-1)
	}
	put(100)
	h.Conf(2, index, clustertest.AddVoter(0xa2, clustertest.RequestID(0xa1, 1763000000000, 250)))
	index++
	put(100)
	h.Member(0xa1, false, true)
	h.Member(0xa2, false, true)
	if zombie {
		h.Member(0xa9, false, true)
	}
	dir := h.Close(index-1, 2)
	return dir
}

func TestZombieOfAWholeLog(t *testing.T) {
	wantFinding(t, dirInput(t, grownLog(t, true)), "M07", []string{"node1"}, "member a9 is in bucket members, raft "+
		"does not know it")
	wantOutcome(t, dirInput(t, grownLog(t, false)), "M07", check.Holds)
}

// With half of the log the configuration is not known, so a member of the other half is no zombie.
func TestHalfALogMakesNoZombies(t *testing.T) {
	for name, half := range map[string]func(n int) (from, to int){
		"the first half is missing": func(n int) (int, int) { return 0, n / 2 },
		"the last half is missing":  func(n int) (int, int) { return n / 3, n },
		"the middle is missing":     func(n int) (int, int) { return n / 3, n - 2 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := grownLog(t, false)
			names := segmentsOf(t, dir)
			if len(names) < 6 {
				t.Fatalf("only %d segments", len(names))
			}
			from, to := half(len(names))
			removed(t, names[from:to]...)
			in := dirInput(t, dir)
			if in.Members[0].ConfigurationCurrent() {
				t.Error("the configuration is taken for known")
			}
			wantOutcome(t, in, "M07", check.NotChecked)
			wantOutcome(t, in, "M03", check.NotChecked)
			wantOutcome(t, in, "M09", check.Holds)
		})
	}
}
