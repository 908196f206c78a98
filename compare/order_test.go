package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestOrderOfArguments: the answer for an incident is the same when it is asked again and in every order of its
// sources.
func TestOrderOfArguments(t *testing.T) {
	for _, name := range evidencetest.Incidents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameInAnyOrder(t, specsOf(t, evidencetest.Incident(t, name)))
		})
	}
}

// sameInAnyOrder fails the test unless the answer is the same when the sources are given again, and in other orders.
func sameInAnyOrder(t *testing.T, specs []evidence.Spec) {
	t.Helper()
	want := answer(diagnose(t, specs))
	for _, order := range orders(specs) {
		got := answer(diagnose(t, order))
		if got == want {
			continue
		}
		var names []string
		for _, s := range order {
			names = append(names, s.Name)
		}
		t.Errorf("another answer in the order %s:\n%s", strings.Join(names, " "), differentLines(want, got))
	}
}

// orders returns the given order once more, orders in which each source comes first, and the reverse.
func orders(specs []evidence.Spec) [][]evidence.Spec {
	out := [][]evidence.Spec{specs}
	if len(specs) < 2 {
		return out
	}
	reversed := slices.Clone(specs)
	slices.Reverse(reversed)
	out = append(out, reversed)
	for i := 1; i < min(len(specs), 3); i++ {
		out = append(out, slices.Concat(specs[i:], specs[:i]))
	}
	return out
}

// answer writes down what a report says, without the order in which it says it.
func answer(r *compare.Report) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	members := func(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), " ") }
	add("class %s, cause %s, certainty %s", r.Verdict.Class, orNone(r.Verdict.Cause), orNone(r.Verdict.Certainty))
	if b := r.Verdict.FirstBreak; b != nil {
		add("first break %s at %d/%d, revision %d: %s", b.Check, b.Term, b.Index, b.Revision, members(b.Member))
	}
	for _, f := range r.Findings {
		if f.Severity.Rank() >= check.Warning.Rank() {
			add("finding %s %s at %d: %s", f.Check, f.Severity, f.At.Index, members(f.Members))
		}
	}
	for _, k := range r.Causes {
		add("cause %s %s: %s", k.ID, k.Certainty, members(k.Members))
	}
	if r.Best != nil {
		add("best %s, lost %d entries, %d keys, not proven for %d reasons", members(r.Best.Members),
			r.Best.Lost.CommittedEntries, r.Best.Lost.Keys, len(r.Best.Lost.Unproven))
		for _, k := range r.Best.Ranking {
			add("rank of %s: usable %v, lacks %d, alone holds %d", k.Member, k.Usable, k.Lacks.CommittedEntries,
				k.Unique.CommittedEntries)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func differentLines(a, b string) string {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for _, l := range la {
		if !slices.Contains(lb, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range lb {
		if !slices.Contains(la, l) {
			out = append(out, "+ "+l)
		}
	}
	if len(out) == 0 {
		return "the same lines another number of times"
	}
	return strings.Join(out, "\n")
}

// orNone is a name, or none.
func orNone[T ~string](s *T) string {
	if s == nil {
		return "none"
	}
	return string(*s)
}
