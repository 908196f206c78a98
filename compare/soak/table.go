package soak

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// Table collects what was judged. It may be used from several goroutines.
type Table struct {
	mu     sync.Mutex
	counts map[cell]int
	cases  map[cell]int
	failed []failure
	broken []string
	// skipped counts cases of which the undamaged sources are already judged wrong.
	skipped int
}

type cell struct {
	kind, line string
	sort       Sort
}

type failure struct {
	c        Case
	problems []Problem
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{counts: map[cell]int{}, cases: map[cell]int{}} }

// Add counts a judged case. A case counts once for each way in which it is wrong.
func (t *Table) Add(c Case, problems []Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cases[cell{c.Truth.Kind, c.Line, ""}]++
	seen := map[Sort]bool{}
	for _, p := range problems {
		if !seen[p.Sort] {
			t.counts[cell{c.Truth.Kind, c.Line, p.Sort}]++
		}
		seen[p.Sort] = true
	}
	if len(problems) > 0 {
		t.failed = append(t.failed, failure{c, problems})
	}
}

// Broken notes a seed whose history could not be made.
func (t *Table) Broken(seed uint64, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = append(t.broken, fmt.Sprintf("seed %d: %s", seed, why))
}

// Skipped notes a case with a fault whose sources raise a false alarm without it.
func (t *Table) Skipped() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped++
}

// Wrong returns how many cases are wrong in some way, and how many were judged.
func (t *Table) Wrong() (wrong, judged int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.cases {
		judged += n
	}
	return len(t.failed), judged
}

// Write prints the counts by kind and release, and every case that is wrong with the command that reproduces it.
func (t *Table) Write(w io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprint(tw, "kind\trelease\tcases")
	for _, s := range Sorts {
		_, _ = fmt.Fprintf(tw, "\t%s", s)
	}
	_, _ = fmt.Fprintln(tw)
	rows := slices.SortedFunc(maps.Keys(t.cases), func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.line, b.line))
	})
	total, fine := map[Sort]int{}, 0
	judged := 0
	for _, r := range rows {
		bad := 0
		for _, s := range Sorts {
			n := t.counts[cell{r.kind, r.line, s}]
			bad += n
			total[s] += n
		}
		judged += t.cases[r]
		if bad == 0 && r.kind != healthyKind {
			fine++
			continue
		}
		t.row(tw, r.kind, r.line, t.cases[r], func(s Sort) int { return t.counts[cell{r.kind, r.line, s}] })
	}
	t.row(tw, "all", "", judged, func(s Sort) int { return total[s] })
	if err := tw.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "%d kinds of fault and releases without anything wrong are left out.\n", fine)
	if t.skipped > 0 {
		_, _ = fmt.Fprintf(w, "%d cases with faults are not judged: their sources raise a false alarm without the "+
			"fault.\n", t.skipped)
	}
	slices.SortFunc(t.failed, func(a, b failure) int {
		return cmp.Or(cmp.Compare(a.c.Seed, b.c.Seed), cmp.Compare(a.c.Name, b.c.Name))
	})
	for _, f := range t.failed {
		_, _ = fmt.Fprintf(w, "\n%s %s: make soak SEEDS=%d CASE=%s\n", f.c.Shape, f.c.Line, f.c.Seed, f.c.Name)
		if f.c.Truth.What != "" {
			_, _ = fmt.Fprintf(w, "  truth: %s (damaged: %s)\n", f.c.Truth.What, strings.Join(f.c.Truth.Damaged, ", "))
		}
		for _, p := range f.problems {
			_, _ = fmt.Fprintf(w, "  %s: %s\n", p.Sort, p.Says)
		}
	}
	for _, b := range t.broken {
		_, _ = fmt.Fprintf(w, "\nno history: %s\n", b)
	}
	return nil
}

func (t *Table) row(w io.Writer, kind, line string, cases int, count func(Sort) int) {
	_, _ = fmt.Fprintf(w, "%s\t%s\t%d", kind, line, cases)
	for _, s := range Sorts {
		_, _ = fmt.Fprintf(w, "\t%d", count(s))
	}
	_, _ = fmt.Fprintln(w)
}
