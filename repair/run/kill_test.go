package run

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestKilledAtEveryPoint kills the tool with SIGKILL at every point of a run, before and after each line of its journal
// is flushed, and starts it again each time: it goes on where it stood and reaches the goal. The end-to-end tests do
// the same to longer plans.
func TestKilledAtEveryPoint(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Clone, plan.Reseed} {
		t.Run(string(mode), func(t *testing.T) { killedEverywhere(t, "h-misconfigured-member-add", mode) })
	}
}

func killedEverywhere(t *testing.T, incident string, mode plan.Mode) {
	t.Helper()
	file := savePlan(t, incident, plan.Options{})
	p := mustLoad(t, file)
	out := filepath.Join(t.TempDir(), "out")
	points := KillEverywhere(t, VictimJob{File: file, Mode: mode, Out: out})
	t.Logf("killed %d times", len(points))
	WantEveryPoint(t, points, ownSteps(p, mode))
	st, err := Status(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(st.Runs); n != 1 || st.Runs[0].State != "reached" || len(st.Runs[0].Left) > 0 {
		t.Errorf("%d runs, the first is %s; want one, reached", n, st.Runs[0].State)
	}
	if mode != rehearsal {
		wantHealthy(t, out)
	}
}

// ownSteps are the steps of a run on copies, those that are not in the plan included.
func ownSteps(p *plan.Plan, mode plan.Mode) []string {
	if mode == plan.Clone {
		return []string{p.Way(plan.Clone).Steps[0].ID, p.Way(plan.Clone).Steps[1].ID}
	}
	steps := append([]string{"00-copy", "01-start", "90-stop", "91-compare"}, StepIDs(p, p.Way(plan.Reseed).Uses)...)
	if mode == plan.Reseed {
		steps = append(steps, stepHandOut)
	}
	return steps
}

func mustLoad(t *testing.T, file string) *plan.Plan {
	t.Helper()
	p, err := plan.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wantHealthy diagnoses data dirs that were handed out.
func wantHealthy(t *testing.T, out string) {
	t.Helper()
	wantWell(t, out, 3)
}

// wantWell diagnoses a folder of at least so many data dirs.
func wantWell(t *testing.T, out string, members int) {
	t.Helper()
	r, err := compare.Diagnose(t.Context(), specsOf(out), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Health != check.Healthy || len(r.Members) < members {
		t.Errorf("%d members, %s: %s", len(r.Members), r.Verdict.Class, r.Verdict.Summary)
	}
}

func specsOf(dir string) []evidence.Spec { return []evidence.Spec{{Where: dir}} }
