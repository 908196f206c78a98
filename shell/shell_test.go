package shell_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/etcd-medic/etcd-medic/shell"
)

// nasty are arguments that a careless line would execute, expand, lose or show.
var nasty = []string{"", "plain/key", "with space", "$(touch ran)", "`touch ran`", "; touch ran", "| touch ran",
	"& touch ran", "\n touch ran\n", "a\n", "\n\n", "'; touch ran; '", `"; touch ran; "`, `\`, `\\n`, `a'b"c\d`,
	"-oProxyCommand=touch ran", "--", "-n", "-e", "*", "~", "~root", "{a,b}", "$HOME", "!!", "a!b'!c", "#x", "=ls",
	"a=b", ">ran", "<ran", "%s%n", "100%", "\x1b]0;x\x07", "\x00bad"[1:], "\t", "\r", "\xff\xfe", "a\xffb\n",
	"\u202edrow", "\u009b2J", "\u2028", "ключ", "日本",
	"OUT", "DATA_DIR", "<ENDPOINT>", "while", "do", "done", "k1=x", "${k1%.}", "]]>", "<b>", "a,b", "a: b", "- x", "&x",
	"*x", "?", "[a]", "(a)", strings.Repeat("x", 4096)}

// shells are the shells that a printed command must work in.
func shells(t *testing.T) []string {
	var out []string
	for _, name := range []string{"sh", "dash", "bash"} {
		if path, err := exec.LookPath(name); err == nil {
			out = append(out, path)
		}
	}
	if len(out) == 0 {
		t.Fatal("there is no shell to try")
	}
	return out
}

// args runs a line in a shell in which a function prog prints its arguments, each ended by a zero byte.
func args(t *testing.T, sh, line string) []string {
	t.Helper()
	cmd := exec.Command(sh, "-c", `prog() { for a in "$@"; do printf '%s\000' "$a"; done; }`+"\n"+line)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/nowhere", "LC_ALL=C.UTF-8"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Fatalf("%s: %s: %v %s", sh, line, err, errs.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestArgumentsArriveAsTheyAre(t *testing.T) {
	all := shell.Format("prog")
	for _, s := range nasty {
		all = all.With(s)
	}
	lines := map[string][]string{all.String(): nasty}
	for _, s := range nasty {
		lines[shell.Format("prog {} --x={} {}{} <FILL>", s, s, s, "end").String()] = []string{s, "--x=" + s, s + "end",
			"FILL"}
		before, word := shell.Script([]byte(s))
		lines[before+"prog "+word] = []string{s}
	}
	for line, want := range lines {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"),
			func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			t.Errorf("%q holds what a terminal obeys", line)
		}
		for _, sh := range shells(t) {
			if got := args(t, sh, line); !slices.Equal(got, want) {
				t.Errorf("%s: %s\n%q arrived, want\n%q", sh, line, got, want)
			}
		}
	}
	if strings.Contains(all.String(), "\n") {
		t.Error("a command takes more than a line")
	}
}

func TestOperators(t *testing.T) {
	c := shell.Format("prog {} | while read -r i ; do prog {} ; done > {} ; prog {} && prog", "a b", ";", "/dev/null",
		"|")
	if want := `prog 'a b' | while read -r i; do prog ';'; done > /dev/null; prog '|' && prog`; c.String() != want {
		t.Errorf("%s, want %s", c, want)
	}
}

// Nothing that comes from a source looks like a word to be filled in.
func TestFillIsTyped(t *testing.T) {
	bare := regexp.MustCompile(`^[A-Z_]{2,}$`)
	for _, s := range []string{"OUT", "DATA_DIR", "OUT/x", "x_OUT", "ABC", "<OUT>"} {
		if q := shell.Format("{}", s).String(); bare.MatchString(q) || q != "'"+s+"'" {
			t.Errorf("%s is printed as %s", s, q)
		}
		if c := shell.Format("prog {}", s).Fill(map[string]string{"OUT": "x", "DATA_DIR": "x",
			"<OUT>": "x"}); c.String() != "prog '"+s+"'" {
			t.Errorf("%s was filled in: %s", s, c)
		}
	}
	c := shell.Format("cp <OUT>/{} <DATA_DIR> {}", "n1", shell.FillFor("COPY_OF", "a$(b)-é"))
	if want := "cp OUT/n1 DATA_DIR COPY_OF_A__B___"; c.String() != want {
		t.Errorf("%s, want %s", c, want)
	}
	if got := c.Fill(map[string]string{"OUT": "/new dirs"}).String(); got != "cp '/new dirs/n1' DATA_DIR "+
		"COPY_OF_A__B___" {
		t.Error(got)
	}
	if got := shell.Format("{} {}", 1).String(); got != "1 MISSING" {
		t.Error(got)
	}
}

func TestSourcesAndPlaces(t *testing.T) {
	c := shell.Format("etcd-medic compare").Sources("n 1", "n2").With("n2")
	if got := c.String(); got != "etcd-medic compare 'n 1' n2 n2" {
		t.Error(got)
	}
	if got := c.At(map[string]string{"n2": "$x"}).String(); got != "etcd-medic compare 'n 1' '$x' n2" {
		t.Error(got)
	}
}

func TestListAndBack(t *testing.T) {
	cases := []shell.Command{{}, shell.Format("a {} <B>/{} > {} | b {}", "\xff", "c\n", "", "|"),
		shell.Format("mv <A_B>.x {}", shell.FillFor("COPY_OF", "n"))}
	for _, s := range nasty {
		cases = append(cases, shell.Format("prog {} x{}", s, s))
	}
	for _, c := range cases {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back shell.Command
		if err := json.Unmarshal(b, &back); err != nil || back.String() != c.String() {
			t.Errorf("%s: %s came back as %s, %v", b, c, back, err)
		}
	}
	want := `["a",{"base64":"/w=="},{"join":[{"fill":"B"},"/c\n"]},{"op":"\u003e"},"",{"op":"|"},"b","|"]`
	if b, _ := json.Marshal(cases[1]); string(b) != want {
		t.Errorf("%s, want %s", b, want)
	}
	for _, bad := range []string{`["a",{"op":"$("}]`, `[{"fill":"x; y"}]`, `[{}]`, `[1]`, `{}`, `[{"base64":"*"}]`,
		`[{"join":[{"join":["a"]}]}]`, `[{"join":[{"op":"|"}]}]`} {
		var c shell.Command
		if err := json.Unmarshal([]byte(bad), &c); err == nil {
			t.Errorf("%s was taken as %s", bad, c)
		}
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{"node1": "node1", "..": "_..", "-x": "_-x", "a/b c": "a_b_c", "": "_",
		"é": "_", "$(x)": "__x_"} {
		if got := shell.FileName(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if got := shell.Operand("-x"); got != "./-x" {
		t.Error(got)
	}
	if got := shell.Comment("a\nb\u202ec\x1b"); got != "a_b_c_" {
		t.Error(got)
	}
	if shell.CanPass([]byte("a\x00")) || shell.CanPass(bytes.Repeat([]byte("x"), shell.MaxArg+1)) ||
		!shell.CanPass([]byte("a\n\xff")) {
		t.Error("what can be an argument is not told")
	}
}

// Every template of the program takes as many arguments as it is given.
func TestTemplatesTakeTheirArguments(t *testing.T) {
	calls := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "Format" {
				return true
			}
			if x, ok := f.X.(*ast.Ident); !ok || x.Name != "shell" {
				return true
			}
			calls++
			text := constant(call.Args[0])
			if want := strings.Count(text, "{}"); want != len(call.Args)-1 || call.Ellipsis.IsValid() {
				t.Errorf("%s: %s takes %d arguments and is given %d", path, text, want, len(call.Args)-1)
			}
			return true
		})
		return nil
	})
	if err != nil || calls < 50 {
		t.Errorf("%d templates were looked at: %v", calls, err)
	}
}

func TestAtOnce(t *testing.T) {
	labels := []string{"a", "b b"}
	for want, cmd := range map[string]shell.Command{
		"p x 'the folder' -o y": shell.Format("p x").Sources("a", "b b").With("-o", "y"),
		"p a -o y":              shell.Format("p").Sources("a").With("-o", "y"),
		"p --log a --log 'b b'": shell.Format("p --log {} --log {}", shell.Source("a"), shell.Source("b b")),
		"p a 'b b'":             shell.Format("p {} {}", "a", "b b"),
	} {
		if got := cmd.AtOnce(labels, []string{"the folder"}).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := shell.Format("etcd-medic repair plan {} <X> y", shell.Source("a")).Program(); !slices.Equal(got,
		[]string{"etcd-medic", "repair", "plan"}) {
		t.Errorf("%q", got)
	}
}

// constant is the text of a string constant, which may be put together from several.
func constant(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		return x.Value
	case *ast.BinaryExpr:
		return constant(x.X) + constant(x.Y)
	}
	return ""
}
