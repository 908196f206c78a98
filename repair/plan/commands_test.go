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
