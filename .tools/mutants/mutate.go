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
	pkg *pkg
	// file is the path, name how it is shown.
	file, name string
	line, col  int
	start, end int
	text, what string
	in         *function
	// number chooses the change in the program that holds several.
	number int
	// broken is set when the change does not build, same when it is listed as one that makes the same program.
	broken, same bool
}

// String is the line that shows the change.
func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s", m.name, m.line, m.in.name, m.what)
}

// key names the change without its line, which moves.
func (m *mutant) key() string { return fmt.Sprintf("%s %s: %s", m.name, m.in.name, m.what) }

// apply returns the file's content with the change.
func (m *mutant) apply(src []byte) []byte {
	return slices.Concat(src[:m.start], []byte(m.text), src[m.end:])
}

// body returns the body of the changed function with the change, without its braces.
func (m *mutant) body(src []byte) string {
	return string(src[m.in.start:m.start]) + m.text + string(src[m.end:m.in.end])
}

// function is a function declaration, or a function literal in a package variable.
type function struct {
	// name is that of the function, with its receiver's type, or of the variable.
	name string
	// results is the text of the result list.
	results string
	// start and end are those of the body, without its braces.
	start, end int
}

// finder collects the mutants of one file in the order of the text.
type finder struct {
	fset *token.FileSet
	file string
	src  []byte
	// in is the outermost function around the node being visited.
	in *function
	// results are those of the functions around the node being visited, the innermost last.
	results []*ast.FieldList
	found   []*mutant
}

// mutantsOf lists every change that can be made to a file.
func mutantsOf(file string, src []byte) ([]*mutant, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	m := &finder{fset: fset, file: file, src: src}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				m.outermost(m.nameOf(d), d.Type, d.Body)
			}
		case *ast.GenDecl:
			m.variables(d)
		}
	}
	slices.SortStableFunc(m.found, func(a, b *mutant) int { return a.start - b.start })
	return m.found, nil
}

// nameOf is the name of a function, a method's with the type of its receiver.
func (f *finder) nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	of, _, _ := strings.Cut(strings.TrimPrefix(f.text(d.Recv.List[0].Type), "*"), "[")
	return of + "." + d.Name.Name
}

// variables visits the function literals in the values of package variables, such as tables of rules.
func (f *finder) variables(d *ast.GenDecl) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for _, value := range v.Values {
			ast.Inspect(value, func(n ast.Node) bool {
				if lit, ok := n.(*ast.FuncLit); ok {
					f.outermost(v.Names[0].Name, lit.Type, lit.Body)
					return false
				}
				return true
			})
		}
	}
}

func (f *finder) outermost(name string, t *ast.FuncType, body *ast.BlockStmt) {
	f.in = &function{name: name, start: f.offset(body.Lbrace) + 1, end: f.offset(body.Rbrace)}
	if t.Results != nil {
		f.in.results = f.text(t.Results)
	}
	f.function(t, body)
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
	f.change(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String(),
		fmt.Sprintf("%s instead of %s in %s", to, n.Op, short(f.text(n))))
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

// add replaces a node.
func (f *finder) add(n ast.Node, text, what string) {
	f.change(n.Pos(), n.End(), text, what+": "+short(f.text(n)))
}

func (f *finder) change(from, to token.Pos, text, what string) {
	at := f.fset.Position(from)
	f.found = append(f.found, &mutant{file: f.file, name: f.file, line: at.Line, col: at.Column, start: at.Offset,
		end: f.offset(to), text: text, what: what, in: f.in})
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

// short is the text on one line, cut where it is long.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "..."
	}
	return s
}
