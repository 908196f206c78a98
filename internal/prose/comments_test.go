package prose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestComments: every exported function and type has a comment, and so has every exported method, also those of types
// that are not exported, such as Error and String. The linter asks for all but the methods with common names.
func TestComments(t *testing.T) {
	for _, dir := range append(goFolders(t), ".tools/dist", ".tools/mutants", ".tools/notices", ".tools/testcount") {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				for _, name := range uncommented(d) {
					t.Errorf("%s: %s has no comment", set.Position(name.Pos()), name.Name)
				}
			}
		}
	}
}

// uncommented returns the exported functions and types of a declaration that have no comment.
func uncommented(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if s, ok := s.(*ast.TypeSpec); ok && s.Doc == nil && d.Doc == nil && s.Name.IsExported() {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// TestUncommented: the scan finds what has no comment, and nothing else.
func TestUncommented(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x

type T struct{}

// U has one.
type U struct{}

func (u) Error() string { return "" }

// String has one.
func (u) String() string { return "" }

func hidden() {}

func Shown() {}
`, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range f.Decls {
		for _, name := range uncommented(d) {
			got = append(got, name.Name)
		}
	}
	if strings.Join(got, " ") != "T Error Shown" {
		t.Errorf("without a comment: %v", got)
	}
}
