package check_test

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestFormerLeaderReceivesSnapshot: the leader of term 2 ends before it has stored its last entries, which the others
// have. The leader of a later term sends it a snapshot and the rest of term 2. In term 2 nothing sends it one.
func TestFormerLeaderReceivesSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		term, vote uint64 // of the HardState before the snapshot
		outcome    check.Outcome
	}{
		"in a later term, with its vote": {4, 0xa3, check.Holds},
		"in a later term, without one":   {4, 0, check.Holds},
		"in its own term":                {2, 0xa1, check.Violated},
	} {
		t.Run(name, func(t *testing.T) {
			var dirs []string
			for i, id := range []uint64{0xa1, 0xa2, 0xa3} {
				h := clustertest.NewHand(t, t.TempDir(), fmt.Sprint("node", i+1), id, 0xc1)
				h.Found(false, 0xa1, 0xa2, 0xa3)
				h.Request(2, 4, nil)
				h.State(2, 0xa1, 4)
				for n := uint64(5); n <= 20; n++ {
					key := fmt.Sprint("k", n)
					if i == 0 && n >= 10 && n <= 15 { // of the snapshot
						h.Revision(key, "v")
						continue
					}
					if i == 0 && n == 16 {
						h.State(c.term, c.vote, 9)
						h.Snapshot(2, 15, 0xa1, 0xa2, 0xa3)
						h.State(c.term, c.vote, 15)
					}
					h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), key, "v", true)
					if i > 0 || n < 10 {
						h.State(2, 0xa1, n)
					}
				}
				h.State(4, 0xa3, 20)
				h.Request(4, 21, nil)
				h.State(4, 0xa3, 21)
				for _, v := range []uint64{0xa1, 0xa2, 0xa3} {
					h.Member(v, false, true)
				}
				h.Versions("3.6.0")
				dirs = append(dirs, h.Close(21, 4))
			}
			wantOutcome(t, dirInput(t, dirs...), "R08", c.outcome)
		})
	}
}
