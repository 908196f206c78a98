package plan_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// endingAt writes three members, each with a log that ends with an entry, and that knows a commit index.
func endingAt(t *testing.T, last, commit [3]uint64) (specs []evidence.Spec) {
	t.Helper()
	ids := []uint64{0xa1, 0xa2, 0xa3}
	for i, id := range ids {
		h := clustertest.NewHand(t, t.TempDir(), fmt.Sprintf("node%d", i+1), id, 0xc1)
		h.Found(false, ids...)
		h.Request(2, 4, nil)
		for n := uint64(5); n <= last[i]; n++ {
			h.Put(2, n, clustertest.RequestID(0xa1, 1763000000000, n), fmt.Sprintf("k%d", n), "v", n <= commit[i])
		}
		h.State(2, 0xa1, commit[i])
		for _, m := range ids {
			h.Member(m, false, true)
		}
		specs = append(specs, evidence.Spec{Name: fmt.Sprintf("node%d", i+1), Where: h.Close(commit[i], 2)})
	}
	return specs
}

// TestRebuiltByMajority: the last entries of the logs are executed where a majority holds them, although no source
// shows the commit. Those above may have been acknowledged. blank are the members without a database.
func TestRebuiltByMajority(t *testing.T) {
	for name, tc := range map[string]struct {
		last, commit [3]uint64
		blank        int
		index        uint64
		continues    bool
		open         string
	}{
		"no database":              {[3]uint64{13, 13, 12}, [3]uint64{12, 12, 12}, 3, 13, false, ""},
		"no database, one is open": {[3]uint64{14, 13, 12}, [3]uint64{12, 12, 12}, 3, 13, false, "entry 14"},
		"no database, one log":     {[3]uint64{13, 12, 12}, [3]uint64{12, 12, 12}, 3, 12, false, "entry 13"},
		"continues the best":       {[3]uint64{13, 13, 12}, [3]uint64{12, 12, 12}, 2, 13, true, ""},
		"continues, one is open":   {[3]uint64{15, 14, 12}, [3]uint64{13, 13, 12}, 2, 14, true, "entry 15"},
		"all known, one is open":   {[3]uint64{14, 13, 12}, [3]uint64{13, 13, 12}, 2, 13, true, "entry 14"},
	} {
		t.Run(name, func(t *testing.T) {
			specs := endingAt(t, tc.last, tc.commit)
			blank(t, specs[:tc.blank]...)
			p := newPlan(t, specs, &trials{rebuild: func(j *plan.RebuildJob) (*plan.RebuiltFile, error) {
				return try.Rebuild(t.Context(), *j, filepath.Join(t.TempDir(), "rebuilt.db"))
			}}, plan.Options{})
			x := p.Rebuilt
			if p.Mode != plan.Rebuild || x == nil || x.Index != tc.index || x.Continues != tc.continues ||
				x.Lost != nil {
				t.Fatalf("mode %s, rebuilt %+v", p.Mode, x)
			}
			known := max(tc.commit[0], tc.commit[1], tc.commit[2])
			if (x.ByMajority != "") != (x.Index > known) || !strings.HasSuffix(p.Best.Why, x.ByMajority) {
				t.Errorf("%q, kept because %q", x.ByMajority, p.Best.Why)
			}
			if l := p.Lost; l.CommittedEntries != 0 || l.AfterEnd != 0 || l.Awaited != 0 {
				t.Errorf("lost %+v", l)
			}
			unproven, givenUp, open := strings.Join(p.Lost.Unproven, "; "), p.GivenUp(), 0
			if tc.open != "" {
				open = 1
			}
			says := tc.open + " in the logs may have been acknowledged"
			if len(p.Lost.Unproven) != open || strings.Count(unproven, says) != open ||
				strings.Count(givenUp, says) != open || len(p.Lost.Save) != open {
				t.Errorf("unproven %q, given up %q, saved by %q", unproven, givenUp, p.Lost.Save)
			}
		})
	}
}
