package plan_test

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestApplyCommandsPossible: a way that is not possible is not offered.
func TestApplyCommandsPossible(t *testing.T) {
	p, err := planIncident(t, "a-auth-revision-replay", plan.Options{Gone: []string{"node2", "node3"}}, "node1")
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(shell.Texts(p.ApplyCommands("plan.yaml")), "\n"); strings.Contains(all, "live") ||
		!strings.Contains(all, "--mode clone") {
		t.Error(all)
	}
}

// TestApplyAfter: after a rehearsal the way that was rehearsed is the command, the others are a choice.
func TestApplyAfter(t *testing.T) {
	p, err := planIncident(t, "a-auth-revision-replay", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := shell.Texts(p.ApplyCommands("plan.yaml"))
	for _, c := range []struct {
		mode        plan.Mode
		own, others int
	}{{plan.Live, 1, 2}, {plan.Clone, 1, 2}, {plan.ForceNewCluster, 3, 0}} {
		own, others := p.ApplyAfter(c.mode, "plan.yaml")
		if len(own) != c.own || len(others) != c.others || len(all) != 3 {
			t.Errorf("%s: %q, others %q, of %q", c.mode, shell.Texts(own), shell.Texts(others), all)
		}
		if c.own == 1 && !strings.Contains(own[0].String(), "--mode "+string(c.mode)) {
			t.Errorf("%s: %s", c.mode, own[0])
		}
	}
}
