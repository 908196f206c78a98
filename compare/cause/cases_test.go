package cause_test

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
)

// TestCases: each case in testdata/cases builds a set of sources and says what a diagnosis makes of it. README.md there
// has the words.
func TestCases(t *testing.T) {
	for _, c := range casetest.Read(t, "testdata/cases/*.txt") {
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			if len(c.Wants) == 0 {
				t.Error("nothing is wanted")
			}
			r := diagnose(t, casetest.Specs(casetest.Build(t, c.Lines)))
			everyFindingHasEvidence(t, r)
			for _, w := range c.Wants {
				checkWant(t, r, w)
			}
		})
	}
}

// checkWant compares a report with one line "want ...".
func checkWant(t *testing.T, r *compare.Report, line casetest.Line) {
	t.Helper()
	w := line.Words(t)
	if len(w) < 2 {
		t.Fatalf("line %d: want WHAT WORD...", line.No)
	}
	var named []string
	for _, c := range r.Causes {
		named = append(named, string(c.ID))
	}
	switch what, words := w[0], w[1:]; what {
	case "class":
		if string(r.Verdict.Class) != words[0] {
			t.Errorf("class %s, want %s: %s", r.Verdict.Class, words[0], r.Verdict.Summary)
		}
	case "cause":
		cause, certainty := "none", ""
		if r.Verdict.Cause != nil {
			cause, certainty = string(*r.Verdict.Cause), string(*r.Verdict.Certainty)
		}
		if cause != words[0] || len(words) > 1 && certainty != words[1] {
			t.Errorf("cause %s %s of %v, want %v", cause, certainty, named, words)
		}
	case "named", "absent":
		for _, id := range words {
			if slices.Contains(named, id) != (what == "named") {
				t.Errorf("causes %v, want %s %s", named, what, id)
			}
		}
	case "best":
		if got := slices.Sorted(slices.Values(r.Best.Members)); !slices.Equal(got, words) {
			t.Errorf("best %v, want %v: %s", got, words, r.Best.Why)
		}
	default:
		t.Fatalf("line %d: nothing is called %q", line.No, what)
	}
}
