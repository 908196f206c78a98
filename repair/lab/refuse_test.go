package lab_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// TestLiveRefusesAnotherCluster: a plan for one cluster is not applied to another, and nothing there is touched.
func TestLiveRefusesAnotherCluster(t *testing.T) {
	dir := t.TempDir()
	c, err := lab.Start(t.Context(), lab.Options{Dir: filepath.Join(dir, "lab"), Server: node.Bundled()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	incident := evidencetest.Incident(t, "a-auth-revision-replay")
	p, err := plan.New(t.Context(), []evidence.Spec{{Where: incident}}, try.In(""),
		plan.Options{Compare: compare.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "plan.yaml")
	if err := p.Save(file); err != nil {
		t.Fatal(err)
	}
	o := c.Live()
	o.HostActions = nil
	var refused *refusal.Error
	if _, err = run.Apply(t.Context(), file, run.ApplyOptions{Mode: plan.Live, Live: o}); !errors.As(err,
		&refused) || !strings.Contains(refused.Hint, "--hook-stop") {
		t.Errorf("without anyone on the hosts: %v", err)
	}
	if _, err = run.Apply(t.Context(), file, run.ApplyOptions{Mode: plan.Live, Live: c.Live()}); !errors.As(err,
		&refused) || !strings.Contains(refused.Reason, "no endpoint answers as a member of the plan") {
		t.Errorf("against another cluster: %v", err)
	}
	o = c.Live()
	o.User, o.Password = "root", "wrong"
	// It is no sign of a cluster that waits for its members: nobody is started because of it.
	if _, err = run.Apply(t.Context(), file, run.ApplyOptions{Mode: plan.Live, Live: o}); !errors.As(err,
		&refused) || !strings.Contains(refused.Reason, "no endpoint says which member it is") {
		t.Errorf("with a wrong password: %v", err)
	}
	st, err := run.Status(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range st.Runs {
		if r.State != "given up" || len(r.Steps) > 0 {
			t.Errorf("a refused run is %s with steps %+v", r.State, r.Steps)
		}
	}
}
