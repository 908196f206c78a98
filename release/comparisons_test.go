package release

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNoComparisonOutsideTheTable: what differs by release is asked of the table by the name of a rule. No other
// package orders minor versions, compares one with a number, or makes a release to compare with.
func TestNoComparisonOutsideTheTable(t *testing.T) {
	files, found := 0, []string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"release", "testdata", "lines"}, d.Name()) ||
			strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		found = append(found, comparisons(t, path, nil)...)
		return nil
	})
	if err != nil || files < 300 {
		t.Fatalf("%d files, %v", files, err)
	}
	for _, place := range found {
		t.Error(place)
	}
}

// TestComparisonsAreFound: what the test above looks for.
func TestComparisonsAreFound(t *testing.T) {
	const head = "package x\nfunc f() { _ = "
	for expr, want := range map[string]int{
		"minor < 5": 1, "5 <= m.Version.Minor": 1, "v.Minor() > w.Minor()": 1, "v.Minor == 4": 1, "minors[i] >= n": 1,
		"2+minor > n": 1, "max(minor, 3) > n": 1,
		"v.Reach(r)": 1, "v.IsMinor(5)": 1, "release.Release{Minor: 5}": 1, "v.AtLeast(Version{3, 5, 13})": 1,
		`h.s.Line >= "3.5"`: 1, `x.Version.Text != "3.2.x"`: 1, `"3.5.0" == v`: 1, `strings.HasPrefix(v, "3.5.")`: 1,
		`Fault{Since: "3.5"}`: 1, "newVersion(5, why)": 1, "newVersion(max(5, n), why)": 1,
		`v == "3 members"`: 0, `strings.Contains(text, "to 3.6")`: 0, "newVersion(v, why)": 0,
		"v.Minor > 0": 0, "minor == 0": 0, "v.Minor == w.Minor": 0, "minority < 3": 0, "v.AtLeast(w)": 0,
		"Version{Major: 3, Minor: n}": 0, "len(maxLine) < 4": 0, "n < 5": 0,
	} {
		if got := comparisons(t, "x.go", []byte(head+expr+" }")); len(got) != want {
			t.Errorf("%s: %v", expr, got)
		}
	}
	if got := comparisons(t, "x.go", []byte("package x\nfunc f() { switch minor { case 4: } }")); len(got) != 1 {
		t.Errorf("a switch: %v", got)
	}
}

// comparisons lists the places of a file that compare releases by number.
func comparisons(t *testing.T, path string, source []byte) (places []string) {
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
		if what := comparison(n); what != "" {
			places = append(places, fmt.Sprintf("%s: %s", set.Position(n.Pos()), what))
		}
		return true
	})
	return places
}

func comparison(n ast.Node) string {
	switch x := n.(type) {
	case *ast.BinaryExpr:
		zero := number(x.X) == "0" || number(x.Y) == "0"
		constant := number(x.X) != "" || number(x.Y) != ""
		switch x.Op {
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			if !zero && (isMinor(x.X) || isMinor(x.Y)) {
				return "orders minor versions"
			}
		case token.EQL, token.NEQ:
			if isRelease(x.X) || isRelease(x.Y) {
				return "compares a version with the text of a release"
			}
			if !zero && constant && (isMinor(x.X) || isMinor(x.Y)) {
				return "compares a minor version with a number"
			}
		}
	case *ast.SwitchStmt:
		if x.Tag != nil && isMinor(x.Tag) {
			return "chooses by a minor version"
		}
	case *ast.CaseClause:
		if slices.ContainsFunc(x.List, isRelease) {
			return "chooses by the text of a release"
		}
	case *ast.KeyValueExpr:
		if isRelease(x.Value) && slices.Contains([]string{"Since", "Before", "From", "Until"}, nameOf(x.Key)) {
			return "bounds releases by a text"
		}
	case *ast.CallExpr:
		name := nameOf(x.Fun)
		if (name == "HasPrefix" || name == "Contains") && len(x.Args) == 2 && isRelease(x.Args[1]) {
			return "compares a version with the text of a release"
		}
		if name == "newVersion" && namesMinor(x.Args[0]) {
			return "names a release"
		}
		if name == "Reach" || name == "IsMinor" {
			return "asks for a release instead of a rule"
		}
	case *ast.CompositeLit:
		name := nameOf(x.Type)
		if name == "Release" || name == "Version" && len(x.Elts) == 3 && number(x.Elts[1]) != "" {
			return "names a release"
		}
	}
	return ""
}

var releaseText = regexp.MustCompile(`^"v?3\.\d+(\.(\d+|x)?)?"$`)

// isRelease tells the text of a release or minor version.
func isRelease(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.STRING && releaseText.MatchString(l.Value)
}

// namesMinor tells a number, alone or as a bound.
func namesMinor(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		return slices.ContainsFunc(call.Args, namesMinor)
	}
	return number(e) != ""
}

// number is the text of a number, "" for another expression.
func number(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.INT {
		return l.Value
	}
	return ""
}

func nameOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// isMinor tells an expression whose value is, or comes from, a minor version.
func isMinor(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		name := nameOf(x)
		return name == "Minor" || strings.EqualFold(name, "minor") || strings.EqualFold(name, "minors") ||
			strings.HasSuffix(name, "Minor") || name == "Line"
	case *ast.CallExpr:
		return isMinor(x.Fun) || slices.Contains([]string{"max", "min", "minor"}, nameOf(x.Fun)) &&
			slices.ContainsFunc(x.Args, isMinor)
	case *ast.BinaryExpr:
		return (x.Op == token.ADD || x.Op == token.SUB) && (isMinor(x.X) || isMinor(x.Y))
	case *ast.IndexExpr:
		return isMinor(x.X)
	case *ast.ParenExpr:
		return isMinor(x.X)
	}
	return false
}
