package plan_test

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestOpenEndKnowsHardStates: the HardState of a log that has lost its end shows what was committed after that end.
func TestOpenEndKnowsHardStates(t *testing.T) {
	for commit, known := range map[uint64]string{
		20: "entries up to 20 are known to be committed, the logs among the sources end with 18",
		18: "",
	} {
		specs := cluster(t, 18, 18)
		specs[1].Where = memberDir(t, 1, history{last: 18, commit: commit})
		p := newPlan(t, specs, &trials{}, plan.Options{Gone: []string{"node3"}, Replace: []string{"node2"}})
		o := p.Lost.Open
		if (o != nil) != (known != "") {
			t.Fatalf("commit %d: open end %+v", commit, o)
		}
		if o != nil && (o.CommittedTo != commit || o.LogTo != 18 || strings.Join(o.Voters, " ") != "node2 node3" ||
			!hasCaution(p, "node2, node3 can have committed more than any source shows: "+known)) {
			t.Errorf("open end %+v, cautions %q", o, p.Cautions)
		}
	}
}
