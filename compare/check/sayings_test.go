package check_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
)

var update = flag.Bool("update", false, "write testdata/findings.txt")

const sayingsFile = "testdata/findings.txt"

// sayings are what all checks say of each case, so that a changed word, member or severity is seen.
type sayings struct {
	mu    sync.Mutex
	order []string
	of    map[string]string
}

func newSayings(cases []casetest.Case) *sayings {
	s := &sayings{of: map[string]string{}}
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
	var out strings.Builder
	for _, c := range check.All() {
		r := run(t, in, string(c.ID))
		if len(r.Findings) == 0 && (r.Outcome == check.Holds || r.Outcome == check.NotChecked) {
			continue
		}
		fmt.Fprintf(&out, "  %s %s %s\n", c.ID, r.Outcome, r.Reason)
		for i := range r.Findings {
			f := &r.Findings[i]
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
}

// compare holds the sayings against the file, when all cases ran.
func (s *sayings) compare(t *testing.T) {
	t.Helper()
	if t.Failed() || len(s.of) < len(s.order) {
		return
	}
	var b strings.Builder
	for _, id := range s.order {
		fmt.Fprintf(&b, "%s\n%s", id, s.of[id])
	}
	if *update {
		if err := os.WriteFile(sayingsFile, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(sayingsFile)
	if err != nil {
		t.Fatal(err)
	}
	have, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i, line := range have {
		if i >= len(wanted) || wanted[i] != line {
			t.Fatalf("%s:%d differs (write it with -update, and read what changes):\nhave %s\nwant %s", sayingsFile,
				i+1, line, at(wanted, i))
		}
	}
	if len(wanted) > len(have) {
		t.Errorf("%s has %d lines more", sayingsFile, len(wanted)-len(have))
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
