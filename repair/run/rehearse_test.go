package run

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// savePlan writes the plan of an incident to a folder of the test.
func savePlan(t *testing.T, incident string, o plan.Options, members ...string) string {
	t.Helper()
	p, err := planIncident(t, incident, o, members...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	return file
}

func mustReach(t *testing.T, out *Outcome, err error) {
	t.Helper()
	if out != nil {
		for _, s := range out.Steps {
			t.Logf("%-28s %-12s %6.2fs %s", s.ID, s.State, s.Seconds, s.Detail)
		}
		for _, p := range out.Proofs {
			t.Logf("%-12s %s: %s", p.Outcome, p.What, p.Detail)
		}
		t.Logf("%.2fs, notes %q, %q", out.Seconds, out.Notes, out.Isolation)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !out.Reached {
		t.Fatal("the goal was not reached")
	}
}

// rehearsals are the ways that a plan can go; the rest of the incidents is rehearsed with the tag e2e.
var rehearsals = []struct {
	name, incident string
	o              plan.Options
	members        []string
	way            plan.Mode
}{
	{"move leader and reseed two", "a-auth-revision-replay", plan.Options{}, nil, plan.Live},
	{"start the lagging one, remove the dead one", "h-misconfigured-member-add", plan.Options{}, nil, plan.Live},
	{"a damaged member is never started", "f-bbolt-page-corruption", plan.Options{}, nil, plan.Live},
	{"no majority", "a-auth-revision-replay", plan.Options{Gone: []string{"node1", "node2"}}, []string{"node3"},
		plan.ForceNewCluster},
	{"two of three", "a-auth-revision-replay", plan.Options{}, []string{"node1", "node3"}, plan.Live},
	{"a standby comes first", "a-auth-revision-replay",
		plan.Options{Standby: []plan.Standby{{Name: "node4", URL: "http://127.81.0.4:2380", For: "node2"}}}, nil,
		plan.Live},
}

func TestRehearse(t *testing.T) {
	for _, tc := range rehearsals {
		t.Run(tc.name, func(t *testing.T) {
			file := savePlan(t, tc.incident, tc.o, tc.members...)
			out, err := Rehearse(t.Context(), file, Options{})
			mustReach(t, out, err)
			wantServed(t, out)
			if out.Way != tc.way {
				t.Errorf("way %s, want %s", out.Way, tc.way)
			}
			if left, _ := filepath.Glob(file + ".work"); len(left) > 0 {
				t.Errorf("scratch is left behind: %v", left)
			}
		})
	}
}
