package check_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// want is the outcome of one check. members are those that its findings must name, and no other; reason is part of why
// it was not checked.
type want struct {
	id, outcome string
	members     []string
	reason      string
}

func readWant(t *testing.T, line casetest.Line) want {
	t.Helper()
	w := line.Words(t)
	if len(w) > 0 && w[0] == "lacks" {
		return want{id: w[0], members: append([]string{}, w[1:]...)}
	}
	if len(w) > 1 && w[0] == "odd" {
		return want{id: w[0], outcome: w[1], members: append([]string{}, w[2:]...)}
	}
	if len(w) < 2 {
		t.Fatalf("line %d: want CHECK OUTCOME [MEMBER...|REASON]", line.No)
	}
	out := want{id: w[0], outcome: w[1]}
	switch w[1] {
	case "violated", "warned", "note":
		out.members = w[2:]
	case "not-checked":
		if out.reason = strings.Join(w[2:], " "); out.reason == "" {
			t.Fatalf("line %d: a check that was not made says why", line.No)
		}
	case "holds":
	default:
		t.Fatalf("line %d: no outcome %q", line.No, w[1])
	}
	return out
}

func allCases(t *testing.T) []casetest.Case {
	t.Helper()
	return casetest.Read(t, "testdata/cases/*.txt")
}

// TestCases: each case in testdata/cases builds a set of sources and says what checks make of it. README.md there has
// the words. What all checks say of each case stands in testdata/findings.txt, and where they say it in
// testdata/places.txt; -update writes both, and their changes are to be read.
func TestCases(t *testing.T) {
	cases := allCases(t)
	said := newSayings(cases)
	t.Run("case", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.ID(), func(t *testing.T) {
				t.Parallel()
				in := inputOfSources(t, casetest.Build(t, c.Lines))
				for _, line := range c.Wants {
					readWant(t, line).check(t, in)
				}
				said.add(t, c.ID(), in)
			})
		}
	})
	said.compare(t)
}

// TestEveryCheckHasCases: each check is seen violated (or, where it only informs, with a note), seen holding, and seen
// not made, with the reason.
func TestEveryCheckHasCases(t *testing.T) {
	seen := map[string][]string{}
	for _, c := range allCases(t) {
		if len(c.Wants) == 0 {
			t.Errorf("%s wants nothing", c.ID())
		}
		for _, line := range c.Wants {
			w := readWant(t, line)
			seen[w.id] = append(seen[w.id], w.outcome)
		}
	}
	for _, c := range check.All() {
		if slices.Contains(seen[string(c.ID)], "not-checked") == (alwaysMade[string(c.ID)] != "") {
			t.Errorf("%s (%s): seen %v, want not-checked too, unless alwaysMade gives a reason", c.ID, c.Title,
				seen[string(c.ID)])
		}
		if elsewhere[string(c.ID)] != "" {
			continue
		}
		if !slices.Contains(seen[string(c.ID)], "holds") || !slices.Contains(seen[string(c.ID)], "violated") &&
			!slices.Contains(seen[string(c.ID)], "note") {
			t.Errorf("%s (%s): seen %v, want violated and holds", c.ID, c.Title, seen[string(c.ID)])
		}
	}
	none := &check.Input{}
	for _, c := range check.All() {
		if _, ok := c.Applies(none); ok {
			if r := c.Run(none); r.Outcome == check.Violated || len(r.Findings) > 0 {
				t.Errorf("%s of no sources: %s, %d findings", c.ID, r.Outcome, len(r.Findings))
			}
		}
	}
}

// elsewhere are checks whose input is not a set of files; their tests stand where the input comes from.
var elsewhere = map[string]string{
	"B08": "verify --against", "B09": "verify --drill", "B10": "verify of a chain of snapshots",
	"B11": "verify --max-age", "B12": "verify of a folder", "X10": "diagnose --confirm", "G01": "--server-log",
}

// alwaysMade are checks that can be made of every source, with the reason.
var alwaysMade = map[string]string{"X02": "whatever a source is, it is known which parts it should have"}

// check runs the check and compares.
func (w want) check(t *testing.T, in *check.Input) {
	t.Helper()
	switch w.id {
	case "lacks":
		w.checkLacks(t, in)
		return
	case "odd":
		w.checkOdd(t, in)
		return
	}
	r := run(t, in, w.id)
	var said []string
	rank := check.Warning.Rank()
	if w.outcome == "note" {
		rank = check.Info.Rank()
	}
	named := []string{}
	for _, f := range r.Findings {
		said = append(said, string(f.Severity)+": "+f.Title)
		if f.Severity.Rank() < rank {
			continue
		}
		if len(f.Evidence) == 0 {
			t.Errorf("%s: a finding without evidence: %s", w.id, f.Title)
		}
		for _, m := range f.Members {
			if !slices.Contains(named, m) {
				named = append(named, m)
			}
		}
	}
	slices.Sort(named)
	outcome := map[string]check.Outcome{"violated": check.Violated, "warned": check.Violated, "holds": check.Holds,
		"note": check.Holds, "not-checked": check.NotChecked}[w.outcome]
	switch {
	case r.Outcome != outcome:
		t.Errorf("%s: %s (%s) %q, want %s", w.id, r.Outcome, r.Reason, said, w.outcome)
	case w.outcome == "warned" && slices.ContainsFunc(r.Findings,
		func(f check.Finding) bool { return f.Severity.Rank() > check.Warning.Rank() }):
		t.Errorf("%s: %q, want warnings only", w.id, said)
	case w.outcome == "note" && len(r.Findings) == 0:
		t.Errorf("%s: nothing is said", w.id)
	case w.outcome == "holds" && len(named) > 0:
		t.Errorf("%s holds and names %v: %q", w.id, named, said)
	case len(w.members) > 0 && !slices.Equal(named, w.members):
		t.Errorf("%s names %v, want %v: %q", w.id, named, w.members, said)
	case w.reason != "" && !strings.Contains(r.Reason, w.reason):
		t.Errorf("%s was not checked because %q, want %q", w.id, r.Reason, w.reason)
	}
}

// checkLacks wants that the replay says of these members, and no other, that they lack the effect of committed entries.
func (w want) checkLacks(t *testing.T, in *check.Input) {
	t.Helper()
	named := []string{}
	for i, m := range in.Replay.Members {
		if m.Lacks > 0 {
			named = append(named, in.Members[i].Label())
		}
	}
	if !slices.Equal(named, w.members) {
		t.Errorf("%v lack effects, want %v", named, w.members)
	}
}

// checkOdd wants that the first finding of a check names these members as those that differ from a majority.
func (w want) checkOdd(t *testing.T, in *check.Input) {
	t.Helper()
	r := run(t, in, w.outcome)
	if len(r.Findings) == 0 || !slices.Equal(append([]string{}, r.Findings[0].Odd...), w.members) {
		t.Errorf("%s: %+v, want %v to differ from the majority", w.outcome, r.Findings, w.members)
	}
}

// inputOfSources is what checks look at, of the sources of a case.
func inputOfSources(t *testing.T, sources []casetest.Source) *check.Input {
	t.Helper()
	ctx := context.Background()
	set := casetest.Open(t, sources, evidence.Options{List: true})
	in := &check.Input{Members: set.Members, MaxRows: 20, Single: len(sources) == 1}
	var err error
	if in.Replay, err = replay.RunWithPlausibleIndex(ctx, set.Members, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	if in.Diff, err = diff.Run(ctx, set.Members, in.Replay, diff.Options{}); err != nil {
		t.Fatal(err)
	}
	return in
}
