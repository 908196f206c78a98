package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// kindsOf are the kinds of the row types whose method Kind returns more than one constant.
var kindsOf = map[string][]string{
	"LogRecord": {"record", "metadata", "state", "snapshot", "crc"},
	"DBFact":    {"meta", "auth", "cluster"},
	"UsageKey":  {"largest", "busiest"},
}

// rowSource is the source text of package render, which writes the fields of a row by name.
type rowSource struct {
	t     *testing.T
	funcs map[string]*ast.FuncDecl // "name" of a function, "Type.name" of a method
}

func parseRows(t *testing.T) *rowSource {
	t.Helper()
	s := &rowSource{t: t, funcs: map[string]*ast.FuncDecl{}}
	files, err := filepath.Glob("../render/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				name = typeName(fn.Recv.List[0].Type) + "." + name
			}
			s.funcs[name] = fn
		}
	}
	return s
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// kinds maps the types of rows to their kinds.
func (s *rowSource) kinds() map[string][]string {
	kinds := map[string][]string{}
	for name, fn := range s.funcs {
		row, ok := strings.CutSuffix(name, ".Kind")
		if !ok || s.funcs[row+".Fields"] == nil {
			continue
		}
		kinds[row] = kindsOf[row]
		if kinds[row] != nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok {
				kinds[row] = append(kinds[row], s.text(r.Results[0]))
			}
			return true
		})
	}
	return kinds
}

func (s *rowSource) text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		s.t.Fatalf("not a constant: %#v; see kindsOf", e)
	}
	v, err := strconv.Unquote(lit.Value)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// fields are the names that a function passes to its Fields, also by way of other functions except those left out.
func (s *rowSource) fields(name string, leftOut ...string) map[string]bool {
	names, seen := map[string]bool{}, map[string]bool{}
	for _, l := range leftOut {
		seen[l] = true
	}
	s.collect(name, names, seen)
	return names
}

func (s *rowSource) collect(name string, into, seen map[string]bool) {
	fn := s.funcs[name]
	if fn == nil {
		s.t.Fatalf("package render has no function %s", name)
	}
	if seen[name] {
		return
	}
	seen[name] = true
	recv, recvType := "", ""
	if fn.Recv != nil {
		recvType, _, _ = strings.Cut(name, ".")
		if n := fn.Recv.List[0].Names; len(n) > 0 {
			recv = n[0].Name
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		sel, method := call.Fun.(*ast.SelectorExpr)
		switch {
		case method && isFields(sel.X): // f.Str("name", …), f.Obj("name", r.method)
			into[s.text(call.Args[0])] = true
			for _, a := range call.Args[1:] {
				if m, ok := a.(*ast.SelectorExpr); ok && s.funcs[recvType+"."+m.Sel.Name] != nil && isName(m.X, recv) {
					s.collect(recvType+"."+m.Sel.Name, into, seen)
				}
			}
		case isFields(call.Args[0]) && len(call.Args) > 1 && isText(call.Args[1]): // word(f, "name", …)
			into[s.text(call.Args[1])] = true
		case isFields(call.Args[0]):
			s.collect(s.callee(call.Fun, recv, recvType), into, seen)
		}
		return true
	})
}

// callee names the function of package render that is called: write(f), r.content(f), MetaPage{…}.Fields(f), and
// r.KeyRow.Fields(f), whose field has the name of its type.
func (s *rowSource) callee(fun ast.Expr, recv, recvType string) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		switch x := fun.X.(type) {
		case *ast.Ident:
			if x.Name == recv {
				return recvType + "." + fun.Sel.Name
			}
		case *ast.CompositeLit:
			return typeName(x.Type) + "." + fun.Sel.Name
		case *ast.SelectorExpr:
			return x.Sel.Name + "." + fun.Sel.Name
		}
	}
	s.t.Fatalf("what does %#v write?", fun)
	return ""
}

func isFields(e ast.Expr) bool { return isName(e, "f") }

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func isText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// rowsOnPage are the fields of each kind of row that the page names, and those below content of an entry: the words in
// backquotes of the last column of the one table and of the first column of the other.
func rowsOnPage(t *testing.T, page string) (rows map[string][]string, content []string) {
	t.Helper()
	_, part, _ := strings.Cut(page, "\n## dumplog and dumpdb\n")
	part, _, _ = strings.Cut(part, "\n## ")
	table := func(head string) [][]string {
		_, text, ok := strings.Cut(part, "\n"+head)
		if !ok {
			t.Fatalf("docs/JSON.md has no table %q", head)
		}
		text, _, _ = strings.Cut(text, "\n\n")
		var lines [][]string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "| `") {
				lines = append(lines, strings.Split(strings.Trim(line, "| \n"), " | "))
			}
		}
		return lines
	}
	rows = map[string][]string{}
	for _, line := range table("| kind | from | fields |") {
		for _, kind := range quoted(line[0]) {
			rows[kind] = append(rows[kind], quoted(line[2])...)
		}
	}
	for _, line := range table("| field of `content` | of which request |") {
		content = append(content, quoted(line[0])...)
	}
	return rows, content
}

func quoted(text string) (out []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestJSONPageRows: each kind of row of dumplog and dumpdb is on the page. It names every field that the types of the
// kind write, and no other. Of a type with several kinds each field is named with one of them at least.
func TestJSONPageRows(t *testing.T) {
	onPage, content := rowsOnPage(t, read(t, "../../../../docs/JSON.md"))
	src := parseRows(t)
	equalNames(t, "content", src.fields("writeRequest"), content)
	known := map[string]bool{}
	code, page := map[string]map[string]bool{}, map[string][]string{}
	for row, kinds := range src.kinds() {
		group := strings.Join(slices.Sorted(slices.Values(kinds)), ", ")
		if code[group] == nil {
			code[group] = map[string]bool{}
			for _, kind := range kinds {
				known[kind] = true
				page[group] = append(page[group], onPage[kind]...)
			}
		}
		maps.Copy(code[group], src.fields(row+".Fields", "writeRequest")) // content has a table
	}
	for group, fields := range code {
		equalNames(t, group, fields, page[group])
	}
	for kind := range onPage {
		if !known[kind] {
			t.Errorf("docs/JSON.md describes rows of kind %s, which no type has", kind)
		}
	}
}

func equalNames(t *testing.T, of string, code map[string]bool, page []string) {
	t.Helper()
	for name := range code {
		if !slices.Contains(page, name) {
			t.Errorf("docs/JSON.md does not describe field %s of %s", name, of)
		}
	}
	for _, name := range page {
		if !code[name] {
			t.Errorf("docs/JSON.md describes field %s of %s, which it cannot have", name, of)
		}
	}
}
