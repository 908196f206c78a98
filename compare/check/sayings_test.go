package check_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
)

var update = flag.Bool("update", false, "write testdata/findings.txt and testdata/places.txt")

// The words of findings are in one file. The other has what belongs to them: kind, facts, places and commands.
const (
	sayingsFile = "testdata/findings.txt"
	placesFile  = "testdata/places.txt"
)

// sayings are what all checks say of each case, so that a changed word, member or severity is seen.
type sayings struct {
	mu    sync.Mutex
	order []string
	// of and places are the texts of the two files.
	of, places map[string]string
}

func newSayings(cases []casetest.Case) *sayings {
	s := &sayings{of: map[string]string{}, places: map[string]string{}}
	for i := range cases {
		s.order = append(s.order, cases[i].ID())
	}
	return s
}

// changing matches what differs from run to run, or with the bytes of the files: times, names of scratch folders,
// digests.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?|/tmp/[^ "]*|(digest|sha256) [0-9a-f]{16}`)

// maxShown bounds the evidence of a finding that is compared.
const maxShown = 4

func (s *sayings) add(t *testing.T, id string, in *check.Input) {
	t.Helper()
	var out, places strings.Builder
	for _, c := range check.All() {
		r := run(t, in, string(c.ID))
		if len(r.Findings) == 0 && (r.Outcome == check.Holds || r.Outcome == check.NotChecked) {
			continue
		}
		fmt.Fprintf(&out, "  %s %s %s\n", c.ID, r.Outcome, r.Reason)
		for i := range r.Findings {
			f := &r.Findings[i]
			writePlaces(&places, c.ID, f)
			fmt.Fprintf(&out, "    %s %s %v %d/%d %s\n      %s\n", f.Severity, f.Class, f.Members, f.At.Term,
				f.At.Index, f.Title, f.Explanation)
			if f.Undecided || len(f.Odd)+len(f.ByHand) > 0 || f.More > 0 {
				fmt.Fprintf(&out, "      undecided %t, odd %v, by hand %v, %d more\n", f.Undecided, f.Odd, f.ByHand,
					f.More)
			}
			for n, e := range f.Evidence {
				if n == maxShown {
					break
				}
				fmt.Fprintf(&out, "      - %s %s %s: %s; want %s\n", e.Member, e.Bucket, e.Field, e.Observed,
					e.Expected)
			}
			for _, m := range f.Remedy {
				fmt.Fprintf(&out, "      remedy: %s %s %s\n", m.Text, m.Risk, m.Precondition)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[id] = changing.ReplaceAllString(out.String(), "…")
	s.places[id] = changing.ReplaceAllString(places.String(), "…")
}

// writePlaces writes what a finding has besides its words: its kind and facts, where its evidence is, and the commands
// of both.
func writePlaces(out *strings.Builder, id check.ID, f *check.Finding) {
	fmt.Fprintf(out, "  %s %s", id, f.Kind)
	if f.At.Revision != nil {
		fmt.Fprintf(out, ", revision %d.%d", f.At.Revision.Main, f.At.Revision.Sub)
	}
	if f.Each {
		out.WriteString(", each")
	}
	writeFacts(out, f.Facts)
	for _, e := range f.Evidence[:min(len(f.Evidence), maxShown)] {
		fmt.Fprintf(out, "\n    - %s", e.File)
		if len(e.Key) > 0 {
			fmt.Fprintf(out, " key %q", e.Key)
		}
		if e.Offset != nil {
			fmt.Fprintf(out, " offset %d", *e.Offset)
		}
		if e.Length != 0 {
			fmt.Fprintf(out, " length %d", e.Length)
		}
		if e.Page != nil {
			fmt.Fprintf(out, " page %d", *e.Page)
		}
		if e.Object != nil {
			fmt.Fprintf(out, " object %+v", *e.Object)
		}
		fmt.Fprintf(out, " (%s)", e.Show)
	}
	for _, m := range f.Remedy {
		fmt.Fprintf(out, "\n    remedy: %s", m.Command)
	}
	out.WriteString("\n")
}

// writeFacts writes the facts that have a value.
func writeFacts(out *strings.Builder, facts check.Facts) {
	v := reflect.ValueOf(facts)
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() {
			fmt.Fprintf(out, ", %s %v", v.Type().Field(i).Name, reflect.Indirect(field))
		}
	}
}

// compare holds the sayings against the files, when all cases ran.
func (s *sayings) compare(t *testing.T) {
	t.Helper()
	if t.Failed() || len(s.of) < len(s.order) {
		return
	}
	compareText(t, sayingsFile, s.order, s.of)
	compareText(t, placesFile, s.order, s.places)
}

// compareText compares a text per case with a file.
func compareText(t *testing.T, file string, order []string, of map[string]string) {
	t.Helper()
	var b strings.Builder
	for _, id := range order {
		fmt.Fprintf(&b, "%s\n%s", id, of[id])
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	have, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i, line := range have {
		if i >= len(wanted) || wanted[i] != line {
			t.Fatalf("%s:%d differs (write it with -update, and read what changes):\nhave %s\nwant %s", file,
				i+1, line, at(wanted, i))
		}
	}
	if len(wanted) > len(have) {
		t.Errorf("%s has %d lines more", file, len(wanted)-len(have))
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
