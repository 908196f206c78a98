package plan

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestBumpIsAboveAllThatWasWritten for clusters of every age.
func TestBumpIsAboveAllThatWasWritten(t *testing.T) {
	for _, rev := range []int64{0, 1, leastBump - 1, leastBump, leastBump + 1, 7 * leastBump, 1 << 60} {
		if n := bump(rev); n < rev || n < leastBump || n <= 0 {
			t.Errorf("revision %d is raised by %d", rev, n)
		}
	}
}

// TestHarmless: contents decide between equals; what all of them lack makes no difference, and what they hold apart
// does.
func TestHarmless(t *testing.T) {
	r, err := compare.Diagnose(t.Context(), []evidence.Spec{{Where: evidencetest.Incident(t, "m-healthy-3.6")}},
		compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pl := newPlanner(r, nil, Options{})
	top := []string{"node1", "node2"}
	for _, m := range top {
		pl.ranks[m].Lacks.CommittedEntries = 2
	}
	if !pl.r.Best.Interchangeable(top, pl.facts) {
		t.Error("both lack the same and hold the same: which one is kept makes no difference")
	}
	db := *r.Members[1].DB
	db.Hashes = map[string]string{}
	for k, v := range r.Members[0].DB.Hashes {
		db.Hashes[k] = v
	}
	db.Hashes["lease"] = "other"
	r.Members[1].DB = &db
	if pl.r.Best.Interchangeable(top, pl.facts) {
		t.Error("their leases differ")
	}
}
