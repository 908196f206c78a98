package repair

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/node"
)

// operations are incidents of people's operations and of lost files, with what each plan does.
var operations = []struct {
	incident string
	o        PlanOptions
	mode     Mode
	actions  map[string]Action
	// apply are the ways that hand out whole clusters.
	apply []Mode
}{
	{"o-restored-set-wrong-same-flags", PlanOptions{Best: "r3"}, Live,
		map[string]Action{"r1": Retire, "r2": Retire, "r3": Best}, []Mode{Reseed, Clone}},
	{"i-stuck-learner", PlanOptions{}, Live, map[string]Action{"node1": Best, "node2": Keep, "node3": Keep,
		"node4": Start}, []Mode{Reseed, Clone}},
	{"f2-empty-db", PlanOptions{}, Live, map[string]Action{"node1": Best, "node2": Keep, "node3": Replace},
		[]Mode{Reseed, Clone}},
	{"e3-wal-missing-last-segment", PlanOptions{}, Live,
		map[string]Action{"node1": Replace, "node2": Best, "node3": Keep}, []Mode{Reseed, Clone}},
	{"g-zombie-members", PlanOptions{}, Live, map[string]Action{"1a491d6aa0606200": Remove, "48b9c2c2063da82d": Remove,
		"9050305c4cf64640": Remove,
		"m1":               Best, "m2": Restart, "m3": Restart}, []Mode{Reseed, Clone}},
}

// TestOperations: each is planned, rehearsed and cloned. The clones diagnose healthy. With the tag e2e servers of the
// own line do the rest.
func TestOperations(t *testing.T) {
	for _, tc := range operations {
		t.Run(tc.incident, func(t *testing.T) {
			p, err := planIncident(t, tc.incident, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			wantActions(t, p, tc.actions)
			if p.Mode != tc.mode {
				t.Errorf("mode %s (%s), want %s", p.Mode, p.Why, tc.mode)
			}
			file := filepath.Join(t.TempDir(), "plan.yaml")
			if err := p.Save(file); err != nil {
				t.Fatal(err)
			}
			out, err := Rehearse(t.Context(), file, RunOptions{})
			if _, ok := node.Embedded(5); tc.incident == "g-zombie-members" && !ok {
				refusedForZombies(t, err)
			} else {
				mustReach(t, out, err)
			}
			dir := filepath.Join(t.TempDir(), "clones")
			out, err = Apply(t.Context(), file, ApplyOptions{Mode: Clone, Out: dir})
			mustReach(t, out, err)
			wantWell(t, dir, len(out.Dirs))
		})
	}
}

// refusedForZombies: what mends the rows is a start on a release of 3.5; those of 3.6 would bring the members back.
func refusedForZombies(t *testing.T, err error) {
	t.Helper()
	r := refusal(t, err)
	if !strings.Contains(r.Reason, "brings them back") || !strings.Contains(r.Hint, "--mode clone") {
		t.Errorf("refused: %s; hint: %s", r.Reason, r.Hint)
	}
}
