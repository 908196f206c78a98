package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// lagging writes three members of which the third is sound and lacks the last eight entries. The others hold a row that
// no server writes.
func lagging(t *testing.T) (specs []evidence.Spec) {
	t.Helper()
	return laggingBelow(t, 0)
}

// laggingBelow is lagging, and the others have a raft snapshot at an index, none for 0.
func laggingBelow(t *testing.T, snapshot uint64) (specs []evidence.Spec) {
	t.Helper()
	ids := []uint64{0xa1, 0xa2, 0xa3}
	for i, id := range ids {
		h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), id, 0xc1)
		h.Found(false, ids...)
		h.Request(2, 4, nil)
		last := uint64(20)
		if i == 2 {
			last = 12
		}
		for n := uint64(5); n <= last; n++ {
			h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprintf("k%d", n), "v", true)
			if n == snapshot && i < 2 {
				h.State(2, 0xa1, n)
				h.Snapshot(2, n, ids...)
			}
		}
		h.State(2, 0xa1, last)
		for _, m := range ids {
			h.Member(m, false, true)
		}
		dir := h.Close(last, 2)
		if i < 2 {
			casetest.EditDB(t, dir, func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte("2.9.0"))
			})
		}
		specs = append(specs, evidence.Spec{Name: fmt.Sprintf("node%d", i+1), Where: dir})
	}
	return specs
}

// TestAwaitedEntries: the kept member has not got the last entries. While the cluster runs it gets them from the
// others; clones would lack them, and a forced start loses them.
func TestAwaitedEntries(t *testing.T) {
	p, err := plan.New(t.Context(), lagging(t), try.In(""), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Best.Name != "node3" || p.Lost.Awaited != 8 || p.Lost.CommittedEntries != 0 || p.Mode != plan.Live {
		t.Errorf("keeps %s by %s, lost %+v", p.Best.Name, p.Mode, p.Lost)
	}
	for _, w := range p.Ways {
		if w.Mode == plan.Clone && (w.Possible || !strings.Contains(w.Why, "would lack the last 8 committed entries")) {
			t.Errorf("clone possible %v: %s", w.Possible, w.Why)
		}
	}
	specs := lagging(t)
	for _, x := range specs[:2] {
		if err := os.WriteFile(filepath.Join(x.Where, "member", "snap", "db"), make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Their databases are gone and their logs are purged, so only the one that is left can be continued.
	p, err = plan.New(t.Context(), specs, nil, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Best.Name != "node3" || p.Mode != plan.ForceNewCluster || p.Lost.CommittedEntries != 8 ||
		p.Lost.Awaited != 0 ||
		!slices.ContainsFunc(p.Cautions, func(s string) bool { return strings.Contains(s, "etcd-medic rebuild --base") }) {
		t.Errorf("keeps %s by %s, lost %+v, %q", p.Best.Name, p.Mode, p.Lost, p.Cautions)
	}
}
