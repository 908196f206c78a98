package run

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// TestRehearseWhatIsMissing: a member whose log cannot be mended is all that is at hand. Nothing was said of the other
// voters, so the plan says whose data dirs it needs, and can be tried, not applied. Once they are given up it can.
func TestRehearseWhatIsMissing(t *testing.T) {
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "m-healthy-3.6"))
	flipLog("node1")(t, dir)
	evidencetest.Unchanged(t, dir)
	specs := []evidence.Spec{{Name: "node1", Where: filepath.Join(dir, "node1")}}
	p, err := plan.New(t.Context(), specs, try.In(""), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := p.Missing
	if p.Mode != plan.RehearseOnly || x == nil || !slices.Equal(x.Members, []string{"node2", "node4"}) ||
		p.Tries != plan.Clone {
		t.Fatalf("mode %s (%s), tries %q, missing %+v", p.Mode, p.Why, p.Tries, x)
	}
	if !strings.HasSuffix(x.Give.Run, " node2=DATA_DIR_OF_NODE2 node4=DATA_DIR_OF_NODE4 -o NEW_PLAN.yaml") ||
		!strings.HasSuffix(x.GiveUp.Run, " --lost node2 --lost node4 -o NEW_PLAN.yaml") {
		t.Errorf("%s\n%s", x.Give.Run, x.GiveUp.Run)
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	_, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.Clone, Out: filepath.Join(t.TempDir(), "out")})
	if got := wantRefusal(t, err); !strings.Contains(got.Hint, "the data dirs of node2, node4") {
		t.Errorf("refused with %q, hint %q", got.Reason, got.Hint)
	}
	out, err := Rehearse(t.Context(), file, Options{})
	mustReach(t, out, err)
	if out.Way != plan.Clone {
		t.Errorf("way %s", out.Way)
	}
	p, err = plan.New(t.Context(), specs, try.In(""), plan.Options{Gone: x.Members})
	if err != nil {
		t.Fatal(err)
	}
	if p.Mode != plan.Clone || p.Missing != nil || len(p.ApplyCommands("plan.yaml")) == 0 {
		t.Errorf("with the others given up: mode %s (%s), missing %+v", p.Mode, p.Why, p.Missing)
	}
}
