package compare_test

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestMemberUpdatedInAGap: an entry that no log holds may have given a member other URLs, so rows that say so
// contradict no log. In a set without a gap the same rows do.
func TestMemberUpdatedInAGap(t *testing.T) {
	for name, want := range map[string]struct {
		outcome check.Outcome
		rows    []string // the members whose database has another URL
	}{
		"t-lagging-with-log-gap": {check.Holds, []string{"node2", "node3"}},
		"k-lagging-node":         {check.Violated, []string{"node1", "node2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := evidencetest.Copy(t, evidencetest.Incident(t, name))
			for _, n := range want.rows {
				clustertest.EditMember("node1", func(m map[string]any) {
					m["peerURLs"] = []string{"http://127.0.0.1:1"}
				})(t, filepath.Join(dir, n, "member"))
			}
			r := diagnose(t, specsOf(t, dir))
			for _, c := range r.Checks {
				if c.ID == check.M16 && c.Outcome != want.outcome {
					t.Errorf("M16 is %s (%s), want %s: %+v", c.Outcome, c.Reason, want.outcome, r.Findings)
				}
			}
		})
	}
}
