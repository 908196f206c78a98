package compare_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// classesOf maps classes of truth.json to the names used here.
var classesOf = map[string]string{"different-clusters": "foreign-cluster"}

// TestShapes: sets at production shape (purged log, compacted history, members stopped one after the other) and single
// faults, each diagnosed in both orders of its sources. A sound set gives no error at all, a faulty one keeps its
// damaged members off the best.
func TestShapes(t *testing.T) {
	for _, name := range evidencetest.Shapes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources, truth := evidencetest.Shape(t, name)
			evidencetest.Unchanged(t, sources...)
			var specs []evidence.Spec
			for _, s := range sources {
				specs = append(specs, evidence.Spec{Name: filepath.Base(s), Where: s})
			}
			r := diagnose(t, specs)
			checkShape(t, r, truth)
			slices.Reverse(specs)
			other := diagnose(t, specs)
			checkShape(t, other, truth)
			if a, b := bestOf(r.Best), bestOf(other.Best); !slices.Equal(a, b) ||
				r.Verdict.Class != other.Verdict.Class {
				t.Errorf("class %s and best %v, in the other order of the sources class %s and best %v",
					r.Verdict.Class, a, other.Verdict.Class, b)
			}
			everyFindingHasEvidence(t, r)
		})
	}
}

func bestOf(b *compare.Best) []string {
	if b == nil {
		return nil
	}
	return slices.Sorted(slices.Values(b.Members))
}

func checkShape(t *testing.T, r *compare.Report, truth *evidencetest.ShapeTruth) {
	t.Helper()
	v := r.Verdict
	var classes []string
	for _, c := range truth.Verdict.Classes {
		if other, ok := classesOf[c]; ok {
			c = other
		}
		classes = append(classes, c)
	}
	if !slices.Contains(classes, string(v.Class)) {
		t.Errorf("class %s (%s), want one of %v", v.Class, v.Summary, classes)
	}
	if want := truth.Verdict.Healthy; v.Class != "inconclusive" &&
		(v.Health == check.HealthUnknown || (v.Health == check.Healthy) != want) {
		t.Errorf("healthy %v, want %v", v.Health, want)
	}
	if truth.Verdict.Healthy {
		for _, f := range r.Findings {
			if f.Severity.Rank() >= check.Error.Rank() {
				t.Errorf("%s: %s, in a sound set", f.ID, f.Title)
			}
		}
	}
	if want := shapeCauses(truth.Verdict.Causes); len(want) > 0 &&
		(v.Cause == nil || !slices.Contains(want, string(*v.Cause))) {
		t.Errorf("cause %v, want one of %v", v.Cause, want)
	}
	if best := truth.Best.Names; best != nil && !slices.Equal(bestOf(r.Best), slices.Sorted(slices.Values(best))) {
		t.Errorf("best %v (%s), want %v", r.Best.Members, r.Best.Why, best)
	}
}

func shapeCauses(names []string) (want []string) {
	for _, c := range names {
		want = append(want, causes[c]...)
	}
	return want
}

// shapeMarks are the findings that sets with a longer answer key ask for: checks of which one must say something, and
// what it says.
var shapeMarks = map[string]struct {
	checks []string
	says   string
}{
	"db-ahead-of-wal":                {[]string{"W03", "D04"}, "missing"},
	"bbolt-truncated":                {[]string{"D01", "D02"}, "empty"},
	"v2-v3-membership-mismatch":      {[]string{"M07"}, "1a491d6aa0606200"},
	"advice":                         {[]string{"M07"}, ""},
	"learner-not-promoted":           {[]string{"M05", "M10"}, "node4"},
	"learner-lag":                    {[]string{"M10", "R02"}, "node4"},
	"removed-member-dir":             {[]string{"M08"}, "removed"},
	"separate-clusters":              {[]string{"M12"}, "histories"},
	"same-member-id-in-several-dirs": {[]string{"X01", "M12"}, "e31d8cb9199c1312"},
}

func TestShapeMarks(t *testing.T) {
	seen := 0
	for _, name := range evidencetest.Shapes(t) {
		sources, truth := evidencetest.Shape(t, name)
		if len(truth.MustReport) == 0 {
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			var specs []evidence.Spec
			for _, s := range sources {
				specs = append(specs, evidence.Spec{Name: filepath.Base(s), Where: s})
			}
			r := diagnose(t, specs)
			for _, want := range truth.MustReport {
				mark, known := shapeMarks[want.ID]
				said := slices.ContainsFunc(findings(r, "", mark.checks...),
					func(f check.Finding) bool { return strings.Contains(text(f), mark.says) })
				if !known || !said {
					t.Errorf("must_report %s: known %v, said %v; %+v", want.ID, known, said,
						findings(r, "", mark.checks...))
				}
			}
			for _, not := range truth.MustNotReport {
				probe, known := mustNotReport[not]
				if !known {
					t.Errorf("must_not_report %q is not known to this test", not)
					continue
				}
				if not == "damage on other nodes" {
					continue // the best members of TestShapes
				}
				if why := probe(r, &evidencetest.Expected{}); why != "" {
					t.Errorf("must_not_report %s: %s", not, why)
				}
			}
		})
	}
	if seen < 6 {
		t.Errorf("%d sets with marks, want 6", seen)
	}
}
