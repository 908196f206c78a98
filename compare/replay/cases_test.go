package replay

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
)

// outcomesFile says what the replay makes of each case.
const outcomesFile = "testdata/outcomes.txt"

// TestCases: what the replay makes of every case of the checks and of the causes. Their files say what is wrong in
// each. outcomesFile says for each member how its entries ended, and has a checksum of the whole result. -update writes
// it, and its changes are to be read.
func TestCases(t *testing.T) {
	var cases []casetest.Case
	for _, of := range []string{"check", "cause"} {
		found := casetest.Read(t, filepath.Join("..", of, "testdata", "cases", "*.txt"))
		for i := range found {
			found[i].Name += " (" + of + ")"
		}
		cases = append(cases, found...)
	}
	var mu sync.Mutex
	outcomes := map[string]string{}
	t.Run("case", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.ID(), func(t *testing.T) {
				t.Parallel()
				text := outcomeOf(t, casetest.Build(t, c.Lines))
				mu.Lock()
				defer mu.Unlock()
				outcomes[c.ID()] = c.ID() + "\n" + text
			})
		}
	})
	if t.Failed() || len(outcomes) < len(cases) {
		return
	}
	var all strings.Builder
	for i := range cases {
		all.WriteString(outcomes[cases[i].ID()])
	}
	if *update {
		if err := os.WriteFile(outcomesFile, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(outcomesFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range outcomes {
		if !strings.Contains(string(want), text) {
			t.Errorf("not in %s (write it with -update, and read what changes):\n%s", outcomesFile, text)
		}
	}
	if all.String() != string(want) {
		t.Errorf("%s is not what -update writes", outcomesFile)
	}
}

// outcomeOf replays the sources of a case: a line per member, and a checksum of everything that the replay says.
func outcomeOf(t *testing.T, sources []casetest.Source) string {
	t.Helper()
	set := casetest.Open(t, sources, evidence.Options{})
	r, err := RunWithPlausibleIndex(t.Context(), set.Members, Options{Watch: []byte("/a")})
	if err != nil {
		t.Fatal(err)
	}
	var all, out strings.Builder
	printer{&all}.value("", reflect.ValueOf(r).Elem(), 0)
	for i, m := range r.Members {
		fmt.Fprintf(&out, "  %s: %s\n", set.Members[i].Label(), m.outcome())
	}
	fmt.Fprintf(&out, "  %d events, sum %08x\n", r.EventCount, crc32.ChecksumIEEE([]byte(all.String())))
	return out.String()
}

// outcome is a member's result on one line.
func (r *MemberResult) outcome() string {
	if !r.Checked {
		return "not checked: " + r.Why
	}
	parts := []string{fmt.Sprintf("entries %d..%d", r.From, r.To)}
	count := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprint(n, " ", what))
		}
	}
	for state, n := range r.Counts {
		count(n, State(state).String())
	}
	count(r.Lacks, "lacking")
	count(r.Surplus, "too many")
	count(r.Unique, "unique")
	count(len(r.Extra), "extra")
	count(len(r.Jumps), "auth jumps")
	count(len(r.Reruns), "reruns")
	count(r.BelowCount, "below the compact revision")
	count(len(r.StateDiffs), "other rows")
	count(len(r.LeaseFaults), "leases at fault")
	count(len(r.Beyond), "beyond rights")
	if r.Ahead != nil {
		parts = append(parts, fmt.Sprintf("ahead by %d..%d", r.Ahead.From, r.Ahead.To))
	}
	return strings.Join(parts, ", ")
}
