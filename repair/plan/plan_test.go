package plan_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

var update = flag.Bool("update", false, "rewrite the plans in testdata/plans")

// planIncident plans from inside the incident's folder, so that the plan names no machine's paths.
func planIncident(t *testing.T, name string, o plan.Options, members ...string) (*plan.Plan, error) {
	t.Helper()
	dir := evidencetest.Incident(t, name)
	evidencetest.Unchanged(t, dir)
	t.Chdir(dir)
	specs := []evidence.Spec{{Where: "."}}
	if len(members) > 0 {
		specs = nil
	}
	for _, m := range members {
		specs = append(specs, evidence.Spec{Name: m, Where: m})
	}
	o.Compare = compare.Options{Version: "test"}
	return plan.New(t.Context(), specs, try.In(""), o)
}

// TestPlansOfIncidents holds the plan, or the refusal, for every shipped incident against testdata/plans.
func TestPlansOfIncidents(t *testing.T) {
	golden, err := filepath.Abs("testdata/plans")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range evidencetest.Incidents(t) {
		t.Run(name, func(t *testing.T) {
			p, err := planIncident(t, name, plan.Options{})
			var got []byte
			var refused *refusal.Error
			switch {
			case errors.As(err, &refused):
				got = []byte(refused.Error() + "\nhint: " + refused.Hint + "\n")
			case err != nil:
				t.Fatal(err)
			default:
				if got, err = p.YAML(); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(golden, name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, got) {
				t.Errorf("plan differs (run with -update after looking):\n%s", cmp.Diff(string(want), string(got)))
			}
		})
	}
}

func wantRefusal(t *testing.T, err error) *refusal.Error {
	t.Helper()
	var r *refusal.Error
	if !errors.As(err, &r) {
		t.Fatalf("error %v, want a refusal", err)
	}
	return r
}

func actions(p *plan.Plan) map[string]plan.Action {
	out := map[string]plan.Action{}
	for _, m := range p.Members {
		out[m.Name] = m.Action
	}
	return out
}

// TestPlanWithoutMajority: with one of three dirs at hand, and the others given up, the best member goes on alone.
func TestPlanWithoutMajority(t *testing.T) {
	const incident = "a-auth-revision-replay"
	if _, err := planIncident(t, incident, plan.Options{}, "node3"); err == nil {
		t.Fatal("one healthy member and nothing said of the others: want a refusal")
	} else {
		wantRefusal(t, err)
	}
	p, err := planIncident(t, incident, plan.Options{Gone: []string{"node1", "node2"}}, "node3")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]plan.Action{"node1": plan.Replace, "node2": plan.Replace, "node3": plan.Best}
	if d := cmp.Diff(want, actions(p)); d != "" || p.Mode != plan.ForceNewCluster {
		t.Errorf("mode %s, actions (-want +got):\n%s", p.Mode, d)
	}
	if w := p.Way(plan.Live); w.Possible || len(w.Steps) > 0 {
		t.Errorf("live must not be possible without a majority: %+v", w)
	}
}

// TestPlanTwoOfThree: the absent member is taken out first, and is back before the bad one is stopped: a majority is
// left then.
func TestPlanTwoOfThree(t *testing.T) {
	p, err := planIncident(t, "a-auth-revision-replay", plan.Options{}, "node1", "node3")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Way(plan.Live).Steps {
		if s.Kind == plan.StepStop || s.Kind == plan.StepRemove || s.Kind == plan.StepAdd {
			got = append(got, string(s.Kind)+" "+s.Member)
		}
	}
	want := []string{"stop node2", "remove node2", "add-learner node2", "stop node1", "remove node1",
		"add-learner node1"}
	if d := cmp.Diff(want, got); d != "" || p.Mode != plan.Live {
		t.Errorf("mode %s, steps (-want +got):\n%s", p.Mode, d)
	}
}

// TestPlanKeepsWhatTheOperatorSays: --best overrides content, and the plan tells what that gives up.
func TestPlanKeepsWhatTheOperatorSays(t *testing.T) {
	p, err := planIncident(t, "a-auth-revision-replay", plan.Options{Best: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	if p.Best.Name != "node1" || p.Best.By != "operator" || p.Lost.CommittedEntries != 43 || len(p.Lost.Save) == 0 {
		t.Errorf("best %s by %s, %d lost, saved by %q; want node1, operator, 43", p.Best.Name, p.Best.By,
			p.Lost.CommittedEntries, p.Lost.Save)
	}
	_, err = planIncident(t, "d-wiped-member", plan.Options{Best: "node3"})
	wantRefusal(t, err)
	_, err = planIncident(t, "d-wiped-member", plan.Options{Best: "nobody"})
	wantRefusal(t, err)
	_, err = planIncident(t, "k-lagging-node", plan.Options{Replace: []string{"node3"}})
	if err != nil {
		t.Errorf("--replace on a lagging member: %v", err)
	}
}

// TestPlanTie: members that stand equally well and hold different things are a question for the operator.
func TestPlanTie(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	r, err := compare.Diagnose(t.Context(), []evidence.Spec{{Where: dir}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Best.Members = []string{"node3", "node2"}
	_, err = plan.From(r, nil, plan.Options{})
	if got := wantRefusal(t, err); !strings.Contains(got.Hint, "--best") {
		t.Errorf("refused without telling what to do: %+v", got)
	}
}

// TestPlanMixedClusters: one cluster is kept, by name; the other sources join it.
func TestPlanMixedClusters(t *testing.T) {
	a, b := evidencetest.Incident(t, "m-healthy-3.5"), evidencetest.Incident(t, "gen-healthy-3.4")
	specs := []evidence.Spec{{Name: "x", Where: a + "/node1"}, {Name: "y", Where: b + "/node1"}}
	_, err := plan.New(t.Context(), specs, try.In(""), plan.Options{})
	wantRefusal(t, err)
	p, err := plan.New(t.Context(), specs, try.In(""), plan.Options{Best: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got := actions(p); got["x"] != plan.Best || got["y"] != plan.Join {
		t.Errorf("actions %v, want x best, y join", got)
	}
	if p.Way(plan.Clone).Possible {
		t.Error("a member of another cluster cannot be cloned into this one")
	}
}

// TestPlanFile: a plan survives its file, is never overwritten, and is refused once edited.
func TestPlanFile(t *testing.T) {
	p, err := planIncident(t, "h-misconfigured-member-add", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, p.Save(file))
	back, err := plan.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if back.Best.For == "" || back.Verdict.Problem == "" {
		t.Errorf("a page would name the kept member twice: %q, %q", back.Best.For, back.Verdict.Problem)
	}
	if d := cmp.Diff(p, back, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("plan differs after its file (-want +got):\n%s", d)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(b, []byte("action: remove"), []byte("action: keep"), 1)
	if bytes.Equal(b, edited) {
		t.Fatal("nothing was edited")
	}
	if err := os.WriteFile(file, edited, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = plan.Load(file)
	wantRefusal(t, err)
}
