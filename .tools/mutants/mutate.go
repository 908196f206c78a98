package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutant is one small change of a file: the bytes from start to end are replaced by text.
type mutant struct {
	file       string
	line       int
	start, end int
	text, what string
}

// apply returns the file's content with the change.
func (m *mutant) apply(src []byte) []byte {
	return slices.Concat(src[:m.start], []byte(m.text), src[m.end:])
}

// finder collects the mutants of one file in the order of the text.
type finder struct {
	fset *token.FileSet
	file string
	src  []byte
	// results are those of the functions around the node being visited, the innermost last.
	results []*ast.FieldList
	found   []mutant
}

// mutantsOf lists every change that can be made to a file.
func mutantsOf(file string, src []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	m := &finder{fset: fset, file: file, src: src}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			m.function(fn.Type, fn.Body)
		}
	}
	slices.SortStableFunc(m.found, func(a, b mutant) int { return a.start - b.start })
	return m.found, nil
}

func (f *finder) function(t *ast.FuncType, body *ast.BlockStmt) {
	f.results = append(f.results, t.Results)
	ast.Inspect(body, f.visit)
	f.results = f.results[:len(f.results)-1]
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		f.function(n.Type, n.Body)
		return false
	case *ast.IfStmt:
		f.add(n.Cond, "!("+f.text(n.Cond)+")", "condition negated")
	case *ast.ForStmt:
		// Without its last part a loop would never end.
		for _, part := range []ast.Node{n.Init, n.Cond, n.Body} {
			if part != nil {
				ast.Inspect(part, f.visit)
			}
		}
		return false
	case *ast.BinaryExpr:
		f.operator(n)
	case *ast.IncDecStmt:
		f.add(n, "", "statement dropped")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.add(n, "", "statement dropped")
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !neverReturns(call) {
			f.add(n, "", "statement dropped")
		}
	case *ast.ReturnStmt:
		f.zero(n)
	case *ast.CaseClause:
		f.add(n, "", "case removed")
	}
	return true
}

// neverReturns tells whether a call ends its function: without it the function may lack a return, and would not
// compile.
func neverReturns(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

var operators = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ,
	token.NEQ:  token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
}

func (f *finder) operator(n *ast.BinaryExpr) {
	to, ok := operators[n.Op]
	if !ok {
		return
	}
	at := f.fset.Position(n.OpPos)
	f.found = append(f.found, mutant{file: f.file, line: at.Line, start: at.Offset, end: at.Offset + len(n.Op.String()),
		text: to.String(),
		what: fmt.Sprintf("%s instead of %s in %s", to, n.Op, short(f.text(n)))})
}

// zero makes a return give the zero values of the function's results.
func (f *finder) zero(n *ast.ReturnStmt) {
	results := f.results[len(f.results)-1]
	if len(n.Results) == 0 || results == nil ||
		!slices.ContainsFunc(n.Results, func(x ast.Expr) bool { return !f.isZero(x) }) {
		return
	}
	var zeros []string
	for _, r := range results.List {
		for range max(len(r.Names), 1) {
			zeros = append(zeros, "*new("+f.text(r.Type)+")")
		}
	}
	f.add(n, "return "+strings.Join(zeros, ", "), "zero values returned")
}

func (f *finder) isZero(x ast.Expr) bool {
	return slices.Contains([]string{"nil", "false", "0", `""`}, f.text(x))
}

func (f *finder) add(n ast.Node, text, what string) {
	at := f.fset.Position(n.Pos())
	f.found = append(f.found, mutant{file: f.file, line: at.Line, start: at.Offset,
		end: f.fset.Position(n.End()).Offset, text: text,
		what: what + ": " + short(f.text(n))})
}

func (f *finder) text(n ast.Node) string {
	return string(f.src[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

// short is the text on one line, cut where it is long.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "..."
	}
	return s
}
