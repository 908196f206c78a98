package verdict_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/verdict"
)

// TestCases: each case in testdata/cases builds a set of sources and says what the verdict makes of it. README.md there
// has the words.
func TestCases(t *testing.T) {
	for _, c := range casetest.Read(t, "testdata/cases/*.txt") {
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			if len(c.Wants) == 0 {
				t.Error("nothing is wanted")
			}
			o, wants := compare.Options{}, c.Wants
			if w := wants[0].Words(t); w[0] == "kept" {
				o.Keep, wants = w[1], wants[1:]
			}
			r, err := compare.Diagnose(t.Context(), casetest.Specs(casetest.Build(t, c.Lines)), o)
			if err != nil {
				t.Fatal(err)
			}
			v := newWanted(r)
			for _, line := range wants {
				v.check(t, line)
			}
		})
	}
}

// wanted is a report, and the next steps that no line has named yet.
type wanted struct {
	*compare.Report
	next []string
}

func newWanted(r *compare.Report) *wanted {
	w := &wanted{Report: r}
	for _, n := range r.Next {
		w.next = append(w.next, strings.TrimSpace(n.Text+" $ "+n.Command.String()))
	}
	return w
}

// check compares the report with one line "want ...".
func (v *wanted) check(t *testing.T, line casetest.Line) {
	t.Helper()
	words := line.Words(t)
	if len(words) < 2 && !slices.Contains([]string{"best", "proven", "unbroken"}, line.Rest) ||
		words[0] == "lost" && len(words) < 3 {
		t.Fatalf("line %d: want WHAT WORD...", line.No)
	}
	switch what, words := words[0], words[1:]; what {
	case "class":
		v.equal(t, line, string(v.Verdict.Class), words[0])
	case "unbroken":
		if v.Verdict.FirstBreak != nil {
			t.Errorf("line %d: the first break is %+v, want none", line.No, v.Verdict.FirstBreak)
		}
	case "first":
		v.checkFirst(t, line, words)
	case "best":
		v.equal(t, line, strings.Join(v.Best.Members, " "), strings.Join(words, " "))
	case "says":
		contains(t, line, v.Verdict.Summary, words[0])
	case "unsaid":
		if strings.Contains(v.Verdict.Summary, words[0]) {
			t.Errorf("line %d: %q is in %q", line.No, words[0], v.Verdict.Summary)
		}
	case "why":
		contains(t, line, v.Best.Why, words[0])
	case "row":
		v.checkRow(t, line, words)
	case "lost":
		v.equal(t, line, strconv.Itoa(v.Best.Lost.CommittedEntries)+" "+strconv.Itoa(v.Best.Lost.Keys),
			strings.Join(words[:2], " "))
		contains(t, line, v.Best.Lost.Command.String(), strings.Join(words[2:], " "))
	case "if":
		contains(t, line, v.Best.Lost.Condition(), words[0])
	case "wrong":
		x := v.Best.Lost.Records
		v.equal(t, line, strconv.Itoa(x.Count)+" "+strconv.Itoa(x.Mendable), strings.Join(words, " "))
		if len(x.Rows) != x.Count {
			t.Errorf("line %d: %+v", line.No, x.Rows)
		}
	case "proven":
		v.equal(t, line, strings.Join(v.Best.Lost.Unproven, "; "), "")
	case "unproven":
		contains(t, line, strings.Join(v.Best.Lost.Unproven, "; "), words[0])
	case "next":
		v.checkNext(t, line, words[0])
	case "never":
		if slices.ContainsFunc(newWanted(v.Report).next, func(n string) bool { return strings.Contains(n, words[0]) }) {
			t.Errorf("line %d: %q is suggested: %q", line.No, words[0], v.next)
		}
	default:
		t.Fatalf("line %d: nothing is called %q", line.No, what)
	}
}

func (v *wanted) equal(t *testing.T, line casetest.Line, have, want string) {
	t.Helper()
	if have != want {
		t.Errorf("line %d: %s: have %q, want %q: %s", line.No, line.Rest, have, want, v.Verdict.Summary)
	}
}

func contains(t *testing.T, line casetest.Line, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("line %d: %q is not in %q", line.No, part, text)
	}
}

// checkFirst reads "first CHECK [INDEX [NODE...]]".
func (v *wanted) checkFirst(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	b := v.Verdict.FirstBreak
	if b == nil {
		t.Fatalf("line %d: nothing is broken", line.No)
	}
	have := append([]string{string(b.Check), strconv.FormatUint(b.Index, 10)}, b.Member...)
	if !slices.Equal(have[:min(len(words), len(have))], words) {
		t.Errorf("line %d: have %v, want %v", line.No, have, words)
	}
}

// checkRow reads "row NODE TEXT...": what the ranking says of a member, unusable for one that cannot be kept.
func (v *wanted) checkRow(t *testing.T, line casetest.Line, words []string) {
	t.Helper()
	i := slices.IndexFunc(v.Best.Ranking, func(r verdict.Rank) bool { return r.Member == words[0] })
	if i < 0 {
		t.Fatalf("line %d: no member %s in the ranking", line.No, words[0])
	}
	row := v.Best.Ranking[i]
	for _, w := range words[1:] {
		if w == "unusable" || w == "usable" {
			if row.Usable != (w == "usable") {
				t.Errorf("line %d: usable %t: %q", line.No, row.Usable, row.Reasons)
			}
			continue
		}
		contains(t, line, strings.Join(row.Reasons, "; "), w)
	}
}

// checkNext wants the text in one of the steps after those that were named before.
func (v *wanted) checkNext(t *testing.T, line casetest.Line, text string) {
	t.Helper()
	at := slices.IndexFunc(v.next, func(n string) bool { return strings.Contains(n, text) })
	if at < 0 {
		t.Fatalf("line %d: %q is not there, or not in this order: %q", line.No, text, newWanted(v.Report).next)
	}
	v.next = v.next[at+1:]
}
