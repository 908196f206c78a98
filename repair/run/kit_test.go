package run

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

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

func wantRefusal(t *testing.T, err error) *refusal.Error {
	t.Helper()
	var r *refusal.Error
	if !errors.As(err, &r) {
		t.Fatalf("error %v, want a refusal", err)
	}
	return r
}

func wantActions(t *testing.T, p *plan.Plan, want map[string]plan.Action) {
	t.Helper()
	if d := cmp.Diff(want, actions(p)); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
}

func actions(p *plan.Plan) map[string]plan.Action {
	out := map[string]plan.Action{}
	for _, m := range p.Members {
		out[m.Name] = m.Action
	}
	return out
}
