package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
`

func TestMutantsOf(t *testing.T) {
	found, err := mutantsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.what)
		if changed := string(m.apply([]byte(source))); changed == source {
			t.Errorf("%s changes nothing", m.what)
		}
	}
	want := []string{
		"condition negated: a < b", "<= instead of < in a < b", "statement dropped: n++",
		"<= instead of < in i < 3", "statement dropped: n = n + 1", "- instead of + in n + 1",
		"case removed: case a == 7: return 0, false", "!= instead of == in a == 7",
		`statement dropped: use(func() string { return "x" })`, `zero values returned: return "x"`,
		"zero values returned: return n, a > 0 && b > 0", ">= instead of > in a > 0",
		"|| instead of && in a > 0 && b > 0", ">= instead of > in b > 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("changes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	last := found[len(found)-4]
	if text := string(last.apply([]byte(source))); !strings.Contains(text, "return *new(int), *new(bool)\n}") ||
		last.line != 15 {
		t.Errorf("line %d: %s", last.line, text)
	}
}

// TestRun: of a package of which one function is tested and one is not, the changes of the second survive; the same
// seed gives the same answer, and no file of the package is written to.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"go.mod": "module example.org/p\n\ngo 1.26.0\n",
		"p.go": "package p\n\nfunc tested(a int) bool {\n\treturn a < 3\n}\n\nfunc loose(a int) bool " +
			"{\n\treturn a < 3\n}\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestP(t *testing.T) {\n\tif tested(3) || !tested(2) " +
			"{\n\t\tt.Fail()\n\t}\n\t_ = loose(1)\n}\n",
	}
	write := func() {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func() (counts, string, error) {
		var out bytes.Buffer
		r := &runner{out: &out, goTool: "go", dir: dir, n: 10, seed: 3, limit: 10 * time.Minute,
			took: map[string]time.Duration{}}
		c, err := r.run(context.Background(), []string{"./..."})
		return c, out.String(), err
	}
	write()
	c, text, err := run()
	if err != nil {
		t.Fatal(err)
	}
	if c != (counts{noticed: 2, survived: 2}) {
		t.Errorf("%+v, want 2 noticed and 2 not: %s", c, text)
	}
	for _, want := range []string{"p.go:8: <= instead of < in a < 3\n", "p.go:8: zero values returned: return a < 3\n",
		"noticed 2 of 4 (50%)", "10 were asked for"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "p.go:4:") {
		t.Errorf("what is tested survived: %s", text)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
	if _, again, err := run(); err != nil || again != text {
		t.Errorf("once more: %v, %q instead of %q", err, again, text)
	}
	files["p_test.go"] = strings.Replace(files["p_test.go"], "!tested(2)", "tested(2)", 1)
	write()
	if _, _, err := run(); err == nil || !strings.Contains(err.Error(), "fail without a change") {
		t.Errorf("%v, want that the tests fail without a change", err)
	}
}
