package run

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestStoppedIsAMember: a stopped server's member stays in the cluster, unless the plan found it outside.
func TestStoppedIsAMember(t *testing.T) {
	for action, outside := range map[plan.Action]bool{plan.Replace: false, plan.Keep: false, plan.Remove: false,
		plan.Join: true, plan.Retire: true} {
		p := &plan.Plan{Members: []plan.Member{{Name: "best", Action: plan.Best}, {Name: "m", Action: action}}}
		p.Best.Name = "best"
		p.Ways = []plan.Way{{Mode: plan.Live, Steps: []plan.Step{{ID: "s1", Kind: plan.StepStop, Member: "m"}}}}
		b := &back{p: p, w: &WayBack{Done: []StepResult{{ID: "s1"}}}, values: map[string]string{}}
		if got := b.memberBack(p.Member("m")).State; strings.Contains(got, "no member of this cluster") != outside {
			t.Errorf("%s: %q", action, got)
		}
	}
}
