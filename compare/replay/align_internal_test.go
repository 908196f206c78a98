package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestAlignWithoutWrites: a log without entries that write shows the revision of a database that has applied no more
// than it holds. What other databases applied after it may have written their newest revisions.
func TestAlignWithoutWrites(t *testing.T) {
	for _, c := range []struct {
		applied uint64
		want    place
	}{
		{72, place{index: 70, rev: 50}},
		{73, place{index: 73, rev: 50}},
		{144, place{index: 144, rev: 50}},
	} {
		m := &evidence.Member{DB: &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: 50}}, AppliedMin: c.applied}
		lv := &logView{m: m, logEnd: 72}
		at, ok := lv.align(t.Context(), &writers{appliedRange: appliedRange{c.applied, c.applied}, first: 71})
		if !ok || at != c.want {
			t.Errorf("applied up to %d: %+v, %t, want %+v", c.applied, at, ok, c.want)
		}
	}
}
