//go:build e2e

package run

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestE2ERepairEveryIncident rehearses every shipped incident that has a plan with a server of the line that wrote it,
// and applies it both ways: the data dirs that result are diagnosed healthy, or show nothing that did not come with the
// kept member.
func TestE2ERepairEveryIncident(t *testing.T) {
	planned, servers := 0, map[string]string{}
	for _, v := range []string{"3.3.18", "3.4.3", "3.5.35"} {
		servers[v] = clustertest.Server(t, v) // before the tests change the folder
	}
	for _, name := range evidencetest.Incidents(t) {
		t.Run(name, func(t *testing.T) {
			p, err := planIncident(t, name, plan.Options{})
			var refused *refusal.Error
			if errors.As(err, &refused) {
				return // healthy, lagging, or a backup: TestPlansOfIncidents holds the reason
			}
			if err != nil {
				t.Fatal(err)
			}
			planned++
			file := filepath.Join(t.TempDir(), "plan.yaml")
			if err := p.Save(file); err != nil {
				t.Fatal(err)
			}
			o := Options{EtcdBinary: servers[ownLine(p)]}
			out, err := Rehearse(t.Context(), file, o)
			mustReach(t, out, err)
			for _, mode := range []plan.Mode{plan.Clone, plan.Reseed} {
				dir := filepath.Join(t.TempDir(), string(mode))
				out, err := Apply(t.Context(), file, ApplyOptions{Mode: mode, Out: dir, Options: o})
				mustReach(t, out, err)
				onlyWhatWasThere(t, p, dir)
			}
		})
	}
	if planned < 10 {
		t.Errorf("%d incidents have a plan", planned)
	}
}

// ownLine is the server that may open the data dirs and give them back.
func ownLine(p *plan.Plan) string {
	switch p.Cluster.Minor {
	case 3:
		return "3.3.18"
	case 4:
		return "3.4.3"
	}
	return "3.5.35"
}

// onlyWhatWasThere diagnoses without the repair's own knowledge.
func onlyWhatWasThere(t *testing.T, p *plan.Plan, dir string) {
	t.Helper()
	r, err := compare.Diagnose(t.Context(), specsOf(dir), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := append(slices.Clone(p.Best.Known), check.A02) // A02: a start of 3.3 and 3.4 applies auth operations again
	for i := range r.Findings {
		if f := &r.Findings[i]; plan.Breaks(f) && !slices.Contains(known, f.Check) {
			t.Errorf("%s: %s", f.ID, f.Title)
		}
	}
	for _, k := range r.Checks {
		if slices.Contains([]check.ID{"A01", "K01", "K02", "M02", "L01"}, k.ID) && k.Outcome != "holds" {
			t.Errorf("%s %s: %s", k.ID, k.Outcome, k.Reason)
		}
	}
}

// TestE2EOperations rehearses and applies the incidents of people's operations with servers of their own lines, both
// ways.
func TestE2EOperations(t *testing.T) {
	// before the tests change the folder
	servers := map[int]string{5: clustertest.Server(t, "3.5.35"), 6: clustertest.Server(t, "3.6.16")}
	for _, tc := range operations {
		t.Run(tc.incident, func(t *testing.T) {
			p, err := planIncident(t, tc.incident, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "plan.yaml")
			if err := p.Save(file); err != nil {
				t.Fatal(err)
			}
			o := Options{EtcdBinary: servers[p.Cluster.Minor]}
			out, err := Rehearse(t.Context(), file, o)
			mustReach(t, out, err)
			for _, mode := range tc.apply {
				dir := filepath.Join(t.TempDir(), string(mode))
				out, err := Apply(t.Context(), file, ApplyOptions{Mode: mode, Out: dir, Options: o})
				mustReach(t, out, err)
				wantWell(t, dir, len(out.Dirs))
			}
		})
	}
}

// TestE2EMend mends with servers of the lines that wrote the sets, and etcd's own tool reads the same from the mended
// databases.
func TestE2EMend(t *testing.T) {
	servers := map[int]string{4: clustertest.Server(t, "3.4.3"), 5: clustertest.Server(t, "3.5.35"),
		6: clustertest.Server(t, "3.6.16")}
	etcdutl := filepath.Join(filepath.Dir(servers[6]), "etcdutl-3.6")
	for _, tc := range mendCases() {
		t.Run(tc.name, func(t *testing.T) {
			file, _ := mendPlan(t, &tc)
			p := mustLoad(t, file)
			o := Options{EtcdBinary: servers[p.Cluster.Minor], Rehearse: plan.MendFiles}
			out, err := Rehearse(t.Context(), file, o)
			mustReach(t, out, err)
			dir := filepath.Join(t.TempDir(), "mended")
			out, err = Apply(t.Context(), file, ApplyOptions{Mode: plan.MendFiles, Out: dir, Options: o})
			mustReach(t, out, err)
			for _, m := range p.ToMend() {
				db := filepath.Join(evidencetest.Copy(t, out.Dirs[m.Name]), "member", "snap", "db")
				etcdutlAgrees(t, etcdutl, db, p.MendOf(m.Source).Promise)
			}
		})
	}
}

// etcdutlAgrees holds a database against a promise by etcd's own tool. Its hashkv does not read databases whose keys
// have leases; of those it tells the revision.
func etcdutlAgrees(t *testing.T, etcdutl, db string, want *plan.Promise) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), etcdutl, "hashkv", db, "-w", "json").CombinedOutput()
	var h struct {
		Hash         uint32 `json:"hash"`
		HashRevision int64  `json:"hashRevision"`
	}
	if strings.Contains(string(said), "no lessor to attach lease") {
		if said, err = exec.CommandContext(t.Context(), etcdutl, "snapshot", "status", db, "-w",
			"json").CombinedOutput(); err == nil {
			err = json.Unmarshal(said, &struct {
				Revision *int64 `json:"revision"`
			}{&h.HashRevision})
		}
		h.Hash = want.HashKV
	} else if err == nil {
		err = json.Unmarshal(said, &h)
	}
	if err != nil || h.Hash != want.HashKV || h.HashRevision != want.Revision {
		t.Errorf("etcdutl says %s (%v), the plan %+v", said, err, want)
	}
}
