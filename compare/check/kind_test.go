package check_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// TestKindsAreOfChecks: every kind has one row, says something, and belongs to checks that exist.
func TestKindsAreOfChecks(t *testing.T) {
	checks := map[check.ID]bool{check.X00: true}
	for _, c := range check.All() {
		checks[c.ID] = true
	}
	stated, seen := map[check.ID]bool{}, map[check.Kind]bool{}
	check.EachKind(func(k check.Kind, of []check.ID, states string) {
		if seen[k] || states == "" || len(of) == 0 || k.Check() != of[0] {
			t.Errorf("%s of %v: %s", k, of, states)
		}
		seen[k] = true
		for _, id := range of {
			stated[id] = true
			if !checks[id] {
				t.Errorf("%s: there is no check %s", k, id)
			}
		}
	})
	for id := range checks {
		if !stated[id] {
			t.Errorf("check %s states no kind", id)
		}
	}
}

// writers are the packages that write the texts of findings or show them; all others match kinds and facts. The readers
// of files know no findings.
var writers = []string{"compare/check", "cmd/etcd-medic/internal/render", "dumpdb", "dumplog"}

// TestNoTextIsMatched: nothing decides by what a finding says in words.
func TestNoTextIsMatched(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(writers, rel) || slices.Contains([]string{"testdata", "soak"}, d.Name()) ||
			strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		for _, place := range textsMatched(t, path, nil) {
			t.Error(place)
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// TestMatchedTextsAreFound: what the test above looks for.
func TestMatchedTextsAreFound(t *testing.T) {
	const head = "package x\nfunc f() { _ = "
	for expr, want := range map[string]int{
		`f.Title == "x"`: 1, `"x" != e.Observed`: 1, `strings.Contains(f.Explanation, "x")`: 1,
		`strings.HasPrefix(f.Evidence[0].Field, s)`: 1, `slices.Contains(list, e.Expected)`: 1, `told[f.Title]`: 1,
		`d.Expected == "absent"`: 1, `strings.TrimPrefix(f.Title, s)`: 1, `name.MatchString(e.Observed)`: 1,
		`e.Observed == ""`: 0, `f.Title + "x"`: 0, `fmt.Sprint(f.Title)`: 0, `f.Kind == "x"`: 0,
		`append(s, f.Title)`: 0,
	} {
		if got := textsMatched(t, "x.go", []byte(head+expr+" }")); len(got) != want {
			t.Errorf("%s: %v", expr, got)
		}
	}
	for _, s := range []string{"switch f.Title { case s: }", `switch { case e.Field == "x": }`} {
		if got := textsMatched(t, "x.go", []byte("package x\nfunc f() { "+s+" }")); len(got) != 1 {
			t.Errorf("%s: %v", s, got)
		}
	}
}

// textsMatched lists the places of a file that compare or search a text of a finding.
func textsMatched(t *testing.T, path string, source []byte) (places []string) {
	t.Helper()
	set := token.NewFileSet()
	var src any
	if source != nil {
		src = source
	}
	f, err := parser.ParseFile(set, path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if matchesText(n) {
			places = append(places, fmt.Sprintf("%s: a text of a finding decides", set.Position(n.Pos())))
		}
		return true
	})
	return places
}

func matchesText(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.BinaryExpr:
		return (x.Op == token.EQL || x.Op == token.NEQ) &&
			(isText(x.X) && !isEmpty(x.Y) || isText(x.Y) && !isEmpty(x.X))
	case *ast.SwitchStmt:
		return x.Tag != nil && isText(x.Tag)
	case *ast.IndexExpr:
		return isText(x.Index)
	case *ast.CallExpr:
		fn, ok := x.Fun.(*ast.SelectorExpr)
		return ok && isSearch(fn) && slices.ContainsFunc(x.Args, isText)
	}
	return false
}

// isSearch tells functions of strings and slices, and matching by an expression.
func isSearch(fn *ast.SelectorExpr) bool {
	if strings.HasPrefix(fn.Sel.Name, "Match") || strings.HasPrefix(fn.Sel.Name, "Find") {
		return true
	}
	pkg, ok := fn.X.(*ast.Ident)
	return ok && (pkg.Name == "strings" || pkg.Name == "slices" || pkg.Name == "regexp") &&
		!slices.Contains([]string{"Join", "Repeat", "ToLower", "ToUpper", "TrimSpace", "Split", "Fields"}, fn.Sel.Name)
}

// isText tells a selector of a text of a finding or its evidence.
func isText(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Title", "Explanation", "Observed", "Expected", "Field"}, s.Sel.Name)
}

func isEmpty(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Value == `""`
}
