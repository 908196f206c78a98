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

// TestMajorityOfTwoClusters: next to the logs of another cluster, no entry is said to be committed by a majority: the
// order of the sources would decide by which.
func TestMajorityOfTwoClusters(t *testing.T) {
	spec := func(name string, id, cluster uint64, last uint64, voters ...uint64) evidence.Spec {
		h := clustertest.NewHand(t, t.TempDir(), name, id, cluster)
		h.Found(false, voters...)
		next := uint64(len(voters)) + 1
		for n := next; n <= last; n++ {
			h.Put(2, n, clustertest.RequestID(voters[0], 1763000000000, n), fmt.Sprintf("k%d", n), "v", n <= 12)
		}
		h.State(2, voters[0], 12)
		for _, m := range voters {
			h.Member(m, false, true)
		}
		return evidence.Spec{Name: name, Where: h.Close(12, 2)}
	}
	ours := []evidence.Spec{spec("node1", 0xa1, 0xc1, 13, 0xa1, 0xa2), spec("node2", 0xa2, 0xc1, 13, 0xa1, 0xa2)}
	foreign := spec("other", 0xb1, 0xc2, 20, 0xb1)
	says := func(specs ...evidence.Spec) (n int) {
		r, err := compare.Diagnose(t.Context(), specs, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Findings {
			if strings.Contains(r.Findings[i].Explanation, "though no source shows the commit") {
				n++
			}
		}
		return n
	}
	if says(ours...) == 0 {
		t.Error("without the other cluster nothing is said")
	}
	if first, last := says(foreign, ours[0], ours[1]), says(ours[0], ours[1], foreign); first+last > 0 {
		t.Errorf("said %d times with the other cluster first, %d times with it last", first, last)
	}
}
