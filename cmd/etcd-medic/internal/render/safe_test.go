package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/shell"
)

// obeyed is what a terminal must not get from evidence, and what stands there instead.
var obeyed = []struct{ in, out string }{
	{"\x1b[31mred", `\u001b[31mred`}, {"\x1b]0;title\x07", `\u001b]0;title\u0007`}, {"a\rb", `a\u000db`},
	{"\x7f", `\u007f`}, {"\u009b2J", `\u009b2J`},
	{"\u202egnp", `\u202egnp`}, {"\u200bzero", `\u200bzero`}, {"\u2028", `\u2028`}, {"\U000e0041", `\udb40\udc41`},
	{"\xff", `\xff`}, {"a\xc3", `a\xc3`}, {"\ufffd", "\ufffd"},
	{"ключ\t日本\n", "ключ\t日本\n"},
}

func TestSafe(t *testing.T) {
	for _, tc := range obeyed {
		if got := Safe(tc.in); got != tc.out {
			t.Errorf("%q became %q, want %q", tc.in, got, tc.out)
		}
		var b bytes.Buffer
		if n, err := SafeWriter(&b).Write([]byte(tc.in)); n != len(tc.in) || err != nil || b.String() != tc.out {
			t.Errorf("%q was written as %q (%d, %v)", tc.in, b.String(), n, err)
		}
		doc, err := json.Marshal(tc.in)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		safe := safeFrom(doc, 0, true)
		if err := json.Unmarshal(safe, &back); err != nil || back != strings.ToValidUTF8(tc.in, "\ufffd") ||
			!shell.IsSafe(safe) {
			t.Errorf("%q in JSON is %s, %q, %v", tc.in, safe, back, err)
		}
	}
}

// Every text of a report is shown safe, in every format, with colors and without; a label cannot bring colors of its
// own.
func TestReportsAreSafe(t *testing.T) {
	var nasty strings.Builder
	for _, x := range obeyed {
		nasty.WriteString(x.in)
	}
	evil := nasty.String() + text.Colors{text.FgGreen}.EscapeSeq() + "\nverdict  healthy"
	f := check.Finding{ID: "A01-1", Check: "A01", Severity: check.Critical, Members: []string{evil}, Title: evil,
		Explanation: evil,
		Evidence: []check.Evidence{{Member: evil, File: evil, Bucket: "key", Key: check.Bytes(evil), Field: evil,
			Observed: evil, Expected: evil, Show: shell.Format("etcd-medic dumpdb {} key --history {}",
				shell.Source(evil), evil)}},
		Remedy: []check.Remedy{{Text: evil, Command: shell.Format("etcdctl member remove {}", evil), Risk: evil,
			Precondition: evil}}}
	r := &compare.Report{
		Sources: []compare.Source{{Name: evil, Where: evil, Error: evil}},
		Verdict: compare.Verdict{Health: check.Unhealthy, Class: "data-divergence", Cause: new(cause.ID(evil)),
			Summary: evil,
			FirstBreak: &compare.FirstBreak{Check: "A01", Member: []string{evil}, Key: check.Bytes(evil),
				Expected: evil, Observed: evil}},
		Causes: []compare.Cause{{ID: cause.ID(evil), Title: evil, Certainty: "proof", Members: []string{evil},
			RefutedBy: evil}},
		Members:  []evidence.Facts{{Name: evil, Missing: []string{evil}}},
		Findings: []check.Finding{f},
		Best: &compare.Best{Members: []string{evil}, Why: evil,
			Ranking: []compare.Rank{{Member: evil, Reasons: []string{evil}}, {Member: "n2"}},
			Lost: compare.Lost{CommittedEntries: 7, Keys: 6,
				Entries:  []compare.LostEntry{{What: evil, HeldBy: []string{evil}, ProposedBy: evil}},
				Unproven: []string{evil}}},
		Checks:   []compare.CheckOutcome{{ID: "A01", Title: evil, Outcome: check.NotChecked, Reason: evil}},
		Timeline: []timeline.Moment{{Kind: "term", Members: []string{evil}, What: evil}},
		Next:     []compare.Next{{Text: evil, Command: shell.Format("x {}", evil)}},
	}
	for _, format := range []Format{Table, JSON, JSONL, Lines} {
		for _, color := range []bool{false, true} {
			for name, write := range map[string]func(*bytes.Buffer) error{
				"diagnosis screen": func(b *bytes.Buffer) error {
					return Diagnosis(b, format, r,
						Options{Color: color})
				},
				"inspection screen": func(b *bytes.Buffer) error {
					return Inspection(b, format, r,
						Options{Color: color})
				},
				"diagnosis": func(b *bytes.Buffer) error {
					return Diagnosis(b, format, r,
						Options{Color: color, Full: true})
				},
				"inspection": func(b *bytes.Buffer) error {
					return Inspection(b, format, r,
						Options{Color: color, Full: true})
				},
				"backups": func(b *bytes.Buffer) error {
					return Verified(b, format, &Verification{Reports: []*compare.Report{r}, Brief: false},
						Options{Color: color})
				},
				"sheet": func(b *bytes.Buffer) error {
					return Document(b, format, r,
						Sheet{[]Section{{Title: evil, Pairs: [][2]string{{evil, evil}}, Lines: []string{evil},
							Head: []string{evil}, Rows: [][]string{{evil}}, After: []string{evil},
							Commands: []Command{{evil, shell.Format("x {}", evil)}, {Prefix: evil}}}}},
						Options{Color: color})
				},
			} {
				var b bytes.Buffer
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				out := b.String()
				if color && format == Table && name == "diagnosis" &&
					!strings.Contains(out, text.Colors{text.Bold}.EscapeSeq()) {
					t.Error("nothing is in color")
				}
				for _, own := range []text.Colors{{text.Bold}, {text.Reset}, {text.FgRed, text.Bold}, {text.FgYellow},
					{text.FgYellow, text.Bold}, {text.FgGreen, text.Bold}} {
					out = strings.ReplaceAll(out, own.EscapeSeq(), "")
				}
				if !shell.IsSafe([]byte(out)) || !utf8.ValidString(out) {
					for l := range strings.Lines(out) {
						if !shell.IsSafe([]byte(l)) {
							t.Errorf("%s %s color %v: %q", name, format, color, l)
						}
					}
				}
				if strings.Contains("\n"+out, "\nverdict  healthy") {
					t.Errorf("%s %s: a name begins a line of the page", name, format)
				}
			}
		}
	}
}

// Rows and their heads are shown safe in every format, and stay JSON where they are JSON.
func TestStreamsAreSafe(t *testing.T) {
	for _, format := range []Format{Table, JSON, JSONL, Lines} {
		var b bytes.Buffer
		s := NewStream(&b, format, Head{Source: "n\u202e1\x9b", SourceKind: "db"}, Options{Values: true})
		if err := s.Write(nastyRow{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(nil); err != nil {
			t.Fatal(err)
		}
		if !shell.IsSafe(b.Bytes()) {
			t.Errorf("%s: %q", format, b.String())
		}
		if (format == JSON || format == JSONL) && !json.Valid(b.Bytes()) {
			t.Errorf("%s is no JSON: %s", format, b.String())
		}
	}
	if got := labelText("a\"b\\c\nd\x1b\u202e\xff"); got != `"a\"b\\c\nd\\u001b\\u202e?"` {
		t.Error(got)
	}
}

type nastyRow struct{}

func (nastyRow) Kind() string { return "nasty" }
func (nastyRow) Line(dst []byte, _ Options) []byte {
	for _, x := range obeyed {
		dst = fmt.Append(dst, x.in)
	}
	return dst
}
func (nastyRow) Fields(f Fields) {
	for i, x := range obeyed {
		name := fmt.Sprint("x", i)
		f.Str(name, x.in)
		f.Bytes(name+"b", []byte(x.in))
		f.Value(name+"v", []byte(x.in))
		f.Strs(name+"s", []string{x.in})
		if doc, err := json.Marshal(x.in); err == nil {
			f.JSON(name+"j", doc)
		}
	}
}
