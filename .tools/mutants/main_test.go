package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const source = `package p

func f(a, b int) (n int, ok bool) {
	if a < b {
		n++
	}
	for i := 0; i < 3; i++ {
		n = n + 1
	}
	switch {
	case a == 7:
		return 0, false
	}
	use(func() string { return "x" })
	return n, a > 0 && b > 0
}

var size = 1 + 2

var rules = []rule{
	{"even", func(n int) bool { return n%2 == 0 }},
}

func (r *set[T]) full() bool { return true }
`

func TestMutantsOf(t *testing.T) {
	found, err := mutantsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.in.name+": "+m.what)
		if changed := string(m.apply([]byte(source))); changed == source {
			t.Errorf("%s changes nothing", m)
		}
	}
	want := []string{
		"f: condition negated: a < b", "f: <= instead of < in a < b", "f: statement dropped: n++",
		"f: <= instead of < in i < 3", "f: statement dropped: n = n + 1", "f: - instead of + in n + 1",
		"f: case removed: case a == 7: return 0, false", "f: != instead of == in a == 7",
		`f: statement dropped: use(func() string { return "x" })`, `f: zero values returned: return "x"`,
		"f: zero values returned: return n, a > 0 && b > 0", "f: >= instead of > in a > 0",
		"f: || instead of && in a > 0 && b > 0", "f: >= instead of > in b > 0",
		"rules: zero values returned: return n%2 == 0", "rules: != instead of == in n%2 == 0",
		"set.full: zero values returned: return true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("changes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	last := found[len(found)-7]
	if text := string(last.apply([]byte(source))); !strings.Contains(text, "return *new(int), *new(bool)\n}") ||
		last.line != 15 {
		t.Errorf("line %d: %s", last.line, text)
	}
}

// TestWithChanges: a file holds all its changes, each in a copy of its function, and a line of the text leads back to
// the change that it belongs to.
func TestWithChanges(t *testing.T) {
	src := []byte("package p\n\nfunc f(a int) {\n\ta++\n}\n\nvar g = func() (n int) { return 3 }\n")
	found, err := mutantsOf("p.go", src)
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	found[0].number, found[1].number = 1, 2
	f := withChanges("p.go", src, found)
	want := `package p

func f(a int) {
if mutantNumber == "1" { func() {
	

}(); return }

	a++
}

var g = func() (n int) {
if mutantNumber == "2" { return func() (n int) { return *new(int) 
}() }
 return 3 }
`
	if f.text != want {
		t.Errorf("%s\nwant\n%s", f.text, want)
	}
	for line, want := range map[int]*mutant{3: nil, 4: found[0], 7: found[0], 8: nil, 12: nil, 13: found[1],
		14: found[1], 15: nil} {
		if got := f.at(line); got != want {
			t.Errorf("line %d belongs to %v, want %v", line, got, want)
		}
	}
}

const packageText = `package p

func tested(a int) bool {
	return a < 3
}

func loose(a int) bool {
	return a < 3
}

func never(a int) int {
	n := a
	_ = n
	return a
}

var rules = []func(int) bool{
	func(a int) bool { return a == 7 },
}
`

const packageTests = `package p

import "testing"

func TestP(t *testing.T) {
	if tested(3) || !tested(2) || !rules[0](7) {
		t.Fail()
	}
	_ = loose(1)
}
`

// try is a package in a folder of its own, and the command that runs on it.
type try struct {
	dir   string
	files map[string]string
	same  string
	// parallel is how many runs there are at a time.
	parallel int
}

func newTry(t *testing.T) *try {
	return &try{dir: t.TempDir(), files: map[string]string{"go.mod": "module example.org/p\n\ngo 1.26.0\n",
		"p.go": packageText, "p_test.go": packageTests}}
}

func (y *try) run(t *testing.T, only string) (counts, string, error) {
	t.Helper()
	for name, text := range y.files {
		if err := os.WriteFile(filepath.Join(y.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	r := &runner{out: &out, goTool: "go", dir: y.dir, n: 20, seed: 3, limit: 10 * time.Minute,
		parallel: y.parallel}
	if only != "" {
		r.only = regexp.MustCompile(only)
	}
	if y.same != "" {
		r.sameFile = filepath.Join(y.dir, "same.txt")
		if err := os.WriteFile(r.sameFile, []byte(y.same), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := r.run(context.Background(), []string{"./..."})
	for name, want := range y.files {
		if got, err := os.ReadFile(filepath.Join(y.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
	return c, out.String(), err
}

// TestRun: of a package of which one function is tested, one only run and one not even that, the changes of the last
// two survive, except one that does not build; the same seed gives the same answer, and no file is written to.
func TestRun(t *testing.T) {
	y := newTry(t)
	c, text, err := y.run(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if c != (counts{noticed: 4, survived: 3, broken: 1}) {
		t.Errorf("%+v, want 4 noticed, 3 not, 1 that does not build: %s", c, text)
	}
	for _, want := range []string{"p.go:8 loose: <= instead of < in a < 3\n",
		"p.go:8 loose: zero values returned: return a < 3\n",
		"p.go:14 never: zero values returned: return a (no test runs it)\n", "noticed 4 of 7 (57%), 1 changes did not build",
		"20 were asked for"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "p.go:4 ") || strings.Contains(text, "p.go:18 ") {
		t.Errorf("what is tested survived: %s", text)
	}
	if _, again, err := y.run(t, ""); err != nil || again != text {
		t.Errorf("once more: %v, %q instead of %q", err, again, text)
	}
	y.parallel = 3
	if got, text, err := y.run(t, ""); err != nil || got != c || !strings.Contains(text, "noticed 4 of 7 (57%)") {
		t.Errorf("three at a time: %+v, %v: %s", got, err, text)
	}
	if c, text, err := y.run(t, `rules: !=`); err != nil || c != (counts{noticed: 1}) {
		t.Errorf("one change alone: %+v, %v: %s", c, err, text)
	}
	y.files["p_test.go"] = strings.Replace(packageTests, "!tested(2)", "tested(2)", 1)
	if _, _, err := y.run(t, ""); err == nil || !strings.Contains(err.Error(), "fail without a change") {
		t.Errorf("%v, want that the tests fail without a change", err)
	}
}

// TestEach: the first error is the one that is returned, and what comes after it is not begun.
func TestEach(t *testing.T) {
	wrong := errors.New("wrong")
	var begun atomic.Int32
	err := (&runner{parallel: 2}).each(context.Background(), 100, func(ctx context.Context, i int) error {
		begun.Add(1)
		if i == 3 {
			return wrong
		}
		if i > 3 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if !errors.Is(err, wrong) || begun.Load() > 6 {
		t.Errorf("%v after %d", err, begun.Load())
	}
}

// TestSame: a change listed with its reason is none that a test could notice; a list that is wrong is an error.
func TestSame(t *testing.T) {
	const listed = "p.go loose: <= instead of < in a < 3\n"
	for _, c := range []struct{ name, same, want string }{
		{"listed", "# a comment\n" + listed + "\tonly 1 is asked for\nother/q.go f: x\n\tof another package\n", ""},
		{"no reason", listed, "no reason is given for p.go loose"},
		{"no reason for the first", listed + "p.go tested: x\n", "line 2: no reason is given for p.go loose"},
		{"no change", "\ta reason\n", "line 1: a reason of no change"},
		{"twice", listed + "\ta reason\n" + listed, "line 3: listed twice"},
		{"gone", "p.go loose: statement dropped: a++\n\ta reason\n", "lists a change that is none (any more): p.go loose"},
		{"a file that is gone", "q.go f: x\n\ta reason\n", "lists a change that is none (any more): q.go f"},
		{"noticed", "p.go tested: <= instead of < in a < 3\n\ta reason\n",
			"lists a change that a test noticed: p.go:4 tested"},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newTry(t)
			y.same = c.same
			got, text, err := y.run(t, "")
			switch {
			case c.want != "":
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			case err != nil:
				t.Error(err)
			case got != counts{noticed: 4, survived: 2, broken: 1, same: 1}, strings.Contains(text, "loose: <="),
				!strings.Contains(text, "noticed 4 of 6 (66%), 1 changes did not build and were not counted, "+
					"1 make the same program"):
				t.Errorf("%+v: %s", got, text)
			}
		})
	}
}

func TestReadCoverage(t *testing.T) {
	blocks, err := readCoverage("mode: set\nexample.org/p/p.go:3.4,5.6 7 0\nexample.org/p/p.go:4.1,4.9 1 1\n")
	if err != nil {
		t.Fatal(err)
	}
	p := &pkg{blocks: blocks}
	for at, want := range map[position]bool{{3, 3}: true, {3, 4}: false, {4, 1}: true, {4, 9}: false, {5, 5}: false,
		{5, 6}: true} {
		if got := p.runs(&mutant{file: "/x/p.go", line: at.line, col: at.col}); got != want {
			t.Errorf("%v runs: %t, want %t", at, got, want)
		}
	}
	for _, bad := range []string{"mode: set\nrubbish", "mode: set\np.go:1.2,3.4 5", "mode: set\np.go:1.2,3.x 5 6"} {
		if _, err := readCoverage(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
