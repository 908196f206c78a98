package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestAfterGap: after entries that no log holds nothing is judged, unless the member has applied them.
func TestAfterGap(t *testing.T) {
	gaps := []Gap{{20, 29}, {40, 49}}
	for _, c := range []struct {
		first, applied, want uint64
		gaps                 []Gap
	}{
		{first: 1, applied: 0}, {first: 10, applied: 9}, {first: 10, applied: 8, want: 10},
		{first: 10, applied: 8, gaps: gaps, want: 10}, {first: 10, applied: 9, gaps: gaps, want: 30},
		{first: 10, applied: 28, gaps: gaps, want: 30}, {first: 10, applied: 29, gaps: gaps, want: 50},
		{first: 10, applied: 49, gaps: gaps},
	} {
		r := &Result{First: c.first, Gaps: c.gaps}
		if got := r.afterGap(c.applied); got != c.want {
			t.Errorf("from %d, gaps %v, applied %d: %d, want %d", c.first, c.gaps, c.applied, got, c.want)
		}
	}
}

// TestEntriesAfterGap: they count as not applied, whatever the database holds.
func TestEntriesAfterGap(t *testing.T) {
	b := newBench(t, 4, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "1"))
	b.sim.afterGap = 2
	b.log(put("a", "1"), txn(cmpMod("b", 9), []dumplog.RequestOp{putOp("b", "1")}, nil), put("b", "1")).
		want("applied", "not-applied", "not-applied")
}
