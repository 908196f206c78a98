package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// operations are incidents of people's operations and of lost files, with what each plan does.
var operations = []struct {
	incident string
	o        plan.Options
	mode     plan.Mode
	actions  map[string]plan.Action
	// apply are the ways that hand out whole clusters.
	apply []plan.Mode
}{
	{"o-restored-set-wrong-same-flags", plan.Options{Best: "r3"}, plan.Live,
		map[string]plan.Action{"r1": plan.Retire, "r2": plan.Retire, "r3": plan.Best},
		[]plan.Mode{plan.Reseed, plan.Clone}},
	{"i-stuck-learner", plan.Options{}, plan.Live, map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep,
		"node3": plan.Keep,
		"node4": plan.Start}, []plan.Mode{plan.Reseed, plan.Clone}},
	{"f2-empty-db", plan.Options{}, plan.Live, map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep,
		"node3": plan.Replace},
		[]plan.Mode{plan.Reseed, plan.Clone}},
	{"e3-wal-missing-last-segment", plan.Options{}, plan.Live,
		map[string]plan.Action{"node1": plan.Replace, "node2": plan.Best, "node3": plan.Keep},
		[]plan.Mode{plan.Reseed, plan.Clone}},
	{"g-zombie-members", plan.Options{}, plan.Live,
		map[string]plan.Action{"1a491d6aa0606200": plan.Remove, "48b9c2c2063da82d": plan.Remove,
			"9050305c4cf64640": plan.Remove,
			"m1":               plan.Best, "m2": plan.Restart, "m3": plan.Restart},
		[]plan.Mode{plan.Reseed, plan.Clone}},
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
			out, err := Rehearse(t.Context(), file, Options{})
			if _, ok := node.Embedded(5); tc.incident == "g-zombie-members" && !ok {
				refusedForZombies(t, err)
			} else {
				mustReach(t, out, err)
			}
			dir := filepath.Join(t.TempDir(), "clones")
			out, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.Clone, Out: dir})
			mustReach(t, out, err)
			wantWell(t, dir, len(out.Dirs))
		})
	}
}

// refusedForZombies: what mends the rows is a start on a release of 3.5; those of 3.6 would bring the members back.
func refusedForZombies(t *testing.T, err error) {
	t.Helper()
	r := wantRefusal(t, err)
	if !strings.Contains(r.Reason, "brings them back") || !strings.Contains(r.Hint, "--mode clone") {
		t.Errorf("refused: %s; hint: %s", r.Reason, r.Hint)
	}
}
