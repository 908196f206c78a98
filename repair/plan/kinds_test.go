package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestEveryKindHasARow: each constant of type StepKind has its text and its commands in the table.
func TestEveryKindHasARow(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var named []StepKind
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); !ok || kind.Name != "StepKind" {
			return true
		}
		for _, x := range v.Values {
			text, err := strconv.Unquote(x.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			named = append(named, StepKind(text))
		}
		return true
	})
	if slices.Sort(named); len(named) == 0 || !slices.Equal(named, StepKinds()) {
		t.Errorf("the constants are %q, the table has %q", named, StepKinds())
	}
	for k, row := range kinds {
		if row.text == nil || row.byHand == nil {
			t.Errorf("the row of %s is not complete: %+v", k, row)
		}
	}
}

// TestStepsOfPlans: what the plans of the shipped incidents say of a step comes from its row, and is complete.
func TestStepsOfPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, file := range files {
		p, err := Load(file)
		if err != nil {
			continue // a refusal
		}
		for _, w := range p.Ways {
			for _, s := range w.Steps {
				steps++
				if _, ok := kinds[s.Kind]; !ok || s.Title == "" || s.Precondition == "" || s.Effect == "" ||
					s.Undo == "" || s.Done == "" || len(s.ByHand) == 0 {
					t.Errorf("%s: step %+v", file, s)
				}
			}
		}
	}
	if steps < 100 {
		t.Errorf("%d steps in %d files", steps, len(files))
	}
}
