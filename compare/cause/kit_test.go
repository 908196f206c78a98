package cause_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// named are the causes that diagnoses of this test process have named.
var named struct {
	sync.Mutex
	ids map[cause.ID]bool
}

// TestMain runs the tests, with small segments: those of 64 MB would only cost time. Where all of them ran and passed,
// it wants that each cause of the catalogue was named once.
func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 1 << 20
	code := evidencetest.Run(m)
	if code == 0 && !someOnly() {
		for _, c := range cause.All() {
			if !named.ids[c.ID] {
				fmt.Fprintf(os.Stderr, "cause %s: no test of this package shows a set on which it is named\n", c.ID)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// someOnly tells whether the command line asks for some of the tests, or for a list of them.
func someOnly() bool {
	return slices.ContainsFunc([]string{"test.run", "test.skip", "test.list", "test.bench"}, func(name string) bool {
		f := flag.Lookup(name)
		return f != nil && f.Value.String() != ""
	})
}

// diagnose is a diagnosis of sources. It notes the causes that are named.
func diagnose(t *testing.T, specs []evidence.Spec) *compare.Report {
	t.Helper()
	r, err := compare.Diagnose(context.Background(), specs, compare.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	named.Lock()
	defer named.Unlock()
	if named.ids == nil {
		named.ids = map[cause.ID]bool{}
	}
	for _, c := range r.Causes {
		named.ids[c.ID] = true
	}
	return r
}

// specsOf names the sources of an extracted incident, one per node.
func specsOf(t *testing.T, dir string) []evidence.Spec {
	t.Helper()
	nodes, err := filepath.Glob(filepath.Join(dir, "node*"))
	if err != nil || len(nodes) == 0 {
		t.Fatal(dir, err)
	}
	return dirSpecs(nodes)
}

// dirSpecs names data dirs by their last element.
func dirSpecs(dirs []string) []evidence.Spec {
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	return specs
}

// everyFindingHasEvidence wants evidence for each finding, and findings and a refutation for each cause.
func everyFindingHasEvidence(t *testing.T, r *compare.Report) {
	t.Helper()
	ids := map[string]bool{}
	for _, f := range r.Findings {
		if len(f.Evidence) == 0 {
			t.Errorf("%s (%s) has no evidence", f.ID, f.Title)
		}
		ids[f.ID] = true
	}
	for _, c := range r.Causes {
		for _, id := range c.Because {
			if !ids[id] {
				t.Errorf("cause %s rests on %s, which is no finding", c.ID, id)
			}
		}
		if len(c.Because) == 0 || len(c.Members) == 0 || c.RefutedBy == "" {
			t.Errorf("cause %s rests on %v, names %v and is refuted by %q", c.ID, c.Because, c.Members, c.RefutedBy)
		}
	}
}

// findings returns the findings of the checks that name the member ("" for any).
func findings(r *compare.Report, member string, checks ...string) []check.Finding {
	var out []check.Finding
	for _, f := range r.Findings {
		if slices.Contains(checks, string(f.Check)) && (member == "" || slices.Contains(f.Members, member)) {
			out = append(out, f)
		}
	}
	return out
}

func outcome(r *compare.Report, id string) check.Outcome {
	for _, c := range r.Checks {
		if string(c.ID) == id {
			return c.Outcome
		}
	}
	return check.NotChecked
}

func text(f check.Finding) string {
	return fmt.Sprintf("%s %s %+v", f.Title, f.Explanation, f.Evidence)
}

// Short names for what scripts are made of.
var (
	newScript   = clustertest.NewScript
	as          = clustertest.As
	put         = clustertest.PutRequest
	deleteKey   = clustertest.DeleteRequest
	grantLease  = clustertest.GrantRequest
	revokeLease = clustertest.RevokeRequest
	editDB      = clustertest.EditDB
	revKey      = clustertest.RevisionKey
)

type spoil = clustertest.Damage

// withAuth has the users root and app, app allowed below /app/, and auth on.
func withAuth(s *clustertest.Script) *clustertest.Script {
	s.EnableAuth()
	return s
}

// told is what a diagnosis must say.
type told struct {
	class, cause, certainty string
	best                    []string
	// violated and holds are checks, causes further causes that are named, absent causes that must not be.
	violated, holds, causes, absent []string
}

// diagnoseScript writes the script's dirs, diagnoses them and proves that they are unchanged.
func diagnoseScript(t *testing.T, s *clustertest.Script, spoils ...spoil) *compare.Report {
	t.Helper()
	dirs := s.Write(t, t.TempDir())
	for i, sp := range spoils {
		if sp != nil {
			sp(t, dirs[i]+"/member")
		}
	}
	evidencetest.Unchanged(t, dirs...)
	r := diagnose(t, dirSpecs(dirs))
	everyFindingHasEvidence(t, r)
	return r
}

func (want told) check(t *testing.T, r *compare.Report) {
	t.Helper()
	v := r.Verdict
	cause, certainty := "", ""
	if v.Cause != nil {
		cause, certainty = string(*v.Cause), string(*v.Certainty)
	}
	if string(v.Class) != want.class || cause != want.cause || want.certainty != "" && certainty != want.certainty {
		t.Errorf("%s %q %q, want %s %q %q: %s", v.Class, cause, certainty, want.class, want.cause, want.certainty,
			v.Summary)
	}
	if want.best != nil && !slices.Equal(slices.Sorted(slices.Values(r.Best.Members)), want.best) {
		t.Errorf("best %v, want %v: %s", r.Best.Members, want.best, r.Best.Why)
	}
	for _, id := range want.violated {
		if got := outcome(r, id); got != check.Violated {
			t.Errorf("%s %s, want violated", id, got)
		}
	}
	for _, id := range want.holds {
		if got := outcome(r, id); got == check.Violated {
			t.Errorf("%s is violated: %+v", id, findings(r, "", id)[0])
		}
	}
	names := func(id string) bool {
		return slices.ContainsFunc(r.Causes, func(c compare.Cause) bool { return string(c.ID) == id })
	}
	for _, id := range want.causes {
		if !names(id) {
			t.Errorf("cause %s is not named: %+v", id, r.Causes)
		}
	}
	for _, id := range want.absent {
		if names(id) {
			t.Errorf("cause %s is named", id)
		}
	}
}
