package cause_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

// commonWords are classes and causes whose names are words that code uses for other things too.
var commonWords = []string{"membership", "alarm", "healthy", "inconclusive", "lagging", "unsafe-no-fsync"}

// otherWords are folders whose strings are not names of this kind: tests that judge documents from outside, and texts
// that name checks and causes without knowing them.
var otherWords = []string{"soak", "serverlog", "testdata", "fuzzcli"}

// TestNamesOnlyInTables: check IDs, cause IDs and classes are written as strings in the files of their tables alone.
func TestNamesOnlyInTables(t *testing.T) {
	names := map[string]bool{}
	for _, c := range check.All() {
		names[string(c.ID)] = true
	}
	for _, c := range cause.All() {
		names[string(c.ID)] = true
	}
	for _, row := range check.Classes() {
		names[string(row.Class)] = true
	}
	for _, word := range commonWords {
		delete(names, word)
	}
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(otherWords, d.Name()) || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		case slices.Contains([]string{"check/id.go", "check/class.go", "cause/id.go"},
			strings.TrimPrefix(filepath.ToSlash(path), "../../compare/")):
			return nil
		}
		files++
		for _, place := range namesIn(t, path, names) {
			t.Error(place)
		}
		return nil
	})
	if err != nil || files < 300 || len(names) < 200 {
		t.Fatalf("%d files, %d names, %v", files, len(names), err)
	}
}

// namesIn lists the places of a file where one of the names is written as a string.
func namesIn(t *testing.T, path string, names map[string]bool) (places []string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if s, err := strconv.Unquote(lit.Value); err == nil && names[s] {
			places = append(places, set.Position(lit.Pos()).String()+": "+s+" has a name in package check or cause")
		}
		return true
	})
	return places
}

// TestClassesAreDocumented: docs/JSON.md has the table of classes, in its order.
func TestClassesAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/JSON.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| class | healthy | meaning |\n| --- | --- | --- |\n"
	healthy := map[check.Health]string{check.Healthy: "true", check.Unhealthy: "false", check.HealthUnknown: "null"}
	for _, row := range check.Classes() {
		want += "| `" + string(row.Class) + "` | " + healthy[row.Health] + " | " + row.Meaning + " |\n"
	}
	if !strings.Contains(string(b), want) {
		t.Errorf("docs/JSON.md does not have this table:\n%s", want)
	}
}
