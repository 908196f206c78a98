package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// TestLacksWhatAMajorityHolds: an entry that no source shows to be committed is committed if a majority of the logs
// hold it. A member without it lags, and nothing says that the entry may still be replaced.
func TestLacksWhatAMajorityHolds(t *testing.T) {
	const replaced = "a later leader may replace"
	for name, c := range map[string]struct {
		last    [3]uint64
		lags    string
		replace bool
	}{
		"two hold it":       {[3]uint64{13, 13, 12}, "lags by 1 committed entry (log ends at 12, commit 13)", false},
		"one holds it":      {[3]uint64{13, 12, 12}, "its log lacks 1 entry that another log holds, perhaps committed", true},
		"one has even more": {[3]uint64{14, 13, 12}, "lags by 1 committed entry (log ends at 12, commit 13)", true},
	} {
		t.Run(name, func(t *testing.T) {
			ids := []uint64{0xa1, 0xa2, 0xa3}
			var specs []evidence.Spec
			for i, id := range ids {
				h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), id, 0xc1)
				h.Found(false, ids...)
				h.Request(2, 4, nil)
				for n := uint64(5); n <= c.last[i]; n++ {
					h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprintf("k%d", n), "v", n <= 12)
				}
				h.State(2, 0xa1, 12)
				for _, m := range ids {
					h.Member(m, false, true)
				}
				specs = append(specs, evidence.Spec{Name: fmt.Sprintf("node%d", i+1), Where: h.Close(12, 2)})
			}
			r, err := compare.Diagnose(t.Context(), specs, compare.Options{Keep: "node3"})
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(r.Best.Ranking, func(x compare.Rank) bool { return x.Member == "node3" })
			if got := strings.Join(r.Best.Ranking[at].Reasons, ", "); !strings.HasSuffix(got, c.lags) {
				t.Errorf("%s, want %s", got, c.lags)
			}
			if l := r.Best.Lost; (l.Awaited == 1) != strings.HasPrefix(c.lags, "lags") || l.CommittedEntries != 0 {
				t.Errorf("lost %+v", l)
			}
			replace := false
			for i := range r.Findings {
				f := &r.Findings[i]
				replace = replace || f.Check == check.R02 && strings.Contains(strings.ToLower(f.Explanation), replaced)
			}
			if replace != c.replace {
				t.Errorf("some may be replaced: %v, want %v", replace, c.replace)
			}
		})
	}
}
