package prose_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the folder of the module, as seen from this package.
const root = "../.."

// texts are the files that users read. docs/cli, docs/CHECKS.md and docs/CAUSES.md are generated from them.
var texts = []string{"README.md", "docs/*.md", "compare/*/prose/*.md", "compare/serverlog/messages/*.md"}

// words are the expressions that readers had to translate, with what to write instead.
var words = []struct{ pattern, instead string }{
	{`can not`, "cannot"},
	{`anew`, "again, or new"},
	{`(?:is|are|was|were|be|been|being) told`, "is reported, is named, is known"},
	{`(?:held|holds?|holding) (?:\w+ ){0,4}against`, "is compared with"},
	{`beside`, "next to, in addition to"},
	{`behind`, "after, above; lags behind is right"},
	{`nobody`, "no one, or name who"},
	{`lies`, "is"},
	{`stands?`, "is, holds, exists"},
	{`(?:take|takes|taken|took|taking) in`, "accept, apply"},
	{`(?:live|lives|lived) on`, "remain, stay"},
	{`(?:go|goes|going|gone|went) on`, "continue"},
	{`of (?:its|their) own`, "its own ..., by itself, separate"},
}

// codeWords are expressions that are checked in Go only.
var codeWords = []struct{ pattern, instead string }{
	{`that which`, "what, or name it"},
	{`the one that`, "the noun"},
	{`(?:lie|lying)`, "be, or name the place"},
	{`tells`, "says, shows, reports whether"},
	{`is none of`, "is not a"},
	{`(?:is|are) no [a-z]+`, "is not a"},
	{`can be had`, "is available"},
	{`put up with`, "accept"},
}

// allowed are uses of such words that are right, with the reason.
var allowed = []struct{ pattern, reason string }{
	{`(?:lag|lags|lagged|lagging|far|is|are) behind`, "lag"},
	{`(?:\d+|N|two|many) (?:revisions?|entries) behind`, "lag, in numbers"},
	{`behind by`, "lag, in numbers"},
	{`-behind`, "a flag or a name"},
	{`json:"behind`, "a field of JSON"},
	{`behind (?:Kubernetes|a (?:proxy|load balancer|symbolic link|gateway)|links?|symbolic links)`,
		"a place, not an order"},
	{`%d %s behind`, "lag, in numbers"},
	{`(?://|func .*\)) behind`, "an identifier"},
	{`stands? for`, "is an abbreviation for"},
	{`there (?:is|are) no`, "nothing exists"},
	{`(?:is|are) no longer`, "not any more"},
	{`answer is no`, "yes or no"},
}

// TestPlainWords: no text for users, and no comment or string in Go, has a word that only we understand. Tests and
// testdata are excepted.
func TestPlainWords(t *testing.T) {
	list := newWordList(t)
	for _, glob := range texts {
		files, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", glob, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list.check(t, file, 1, withoutBlocks(string(b)))
		}
	}
	strict := newWordList(t, codeWords...)
	for _, dir := range goFolders(t) {
		strict.checkGo(t, dir)
	}
}

// goFolders returns every folder of the module with Go files other than tests, except testdata and hidden folders.
func goFolders(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(p))
		if dir = filepath.ToSlash(dir); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return err
	})
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d folders with Go files: %v", len(dirs), err)
	}
	return dirs
}

// TestWordList: the list finds each word, also across lines, but not the exceptions.
func TestWordList(t *testing.T) {
	list := newWordList(t, codeWords...)
	for _, c := range []struct {
		text string
		line int
	}{
		{"which tells the reader\nthat it is no entry", 1},
		{"there is no entry, and it is no longer needed", 0},
		{"// Behind is set if", 0},
		{"it cannot start; it lags behind the others by 3 revisions", 0},
		{"first\nit can\nnot start", 2},
		{"the entries behind the snapshot", 1},
		{"the log is held twice against it", 1},
		{"verify --max-behind 3, two revisions behind, a stand-in understands", 0},
	} {
		got := 0
		if f := list.find(c.text); len(f) > 0 {
			got = f[0].line
		}
		if got != c.line {
			t.Errorf("%q: found in line %d, want %d", c.text, got, c.line)
		}
	}
}

type wordList struct {
	words, allowed []*regexp.Regexp
	instead        []string
}

func newWordList(t *testing.T, more ...struct{ pattern, instead string }) *wordList {
	t.Helper()
	compiled := func(pattern string) *regexp.Regexp {
		p := strings.ReplaceAll(pattern, " ", `[\s/*]+`)
		return regexp.MustCompile(`(?i)(?:^|[^\w-])(` + p + `)(?:[^\w-]|$)`)
	}
	list := &wordList{}
	for _, w := range slices.Concat(words, more) {
		list.words = append(list.words, compiled(w.pattern))
		list.instead = append(list.instead, w.instead)
	}
	for _, a := range allowed {
		if a.reason == "" {
			t.Errorf("no reason for %q", a.pattern)
		}
		list.allowed = append(list.allowed, regexp.MustCompile(`(?i)`+strings.ReplaceAll(a.pattern, " ", `[\s/*]+`)))
	}
	return list
}

type found struct {
	line          int
	text, instead string
}

// find returns the words of the list in a text, with the lines that they begin in.
func (l *wordList) find(text string) []found {
	masked := text
	for _, a := range l.allowed {
		masked = a.ReplaceAllStringFunc(masked, func(s string) string {
			return strings.Map(func(r rune) rune {
				if r == '\n' {
					return r
				}
				return '.'
			}, s)
		})
	}
	var out []found
	for i, w := range l.words {
		for _, m := range w.FindAllStringSubmatchIndex(masked, -1) {
			out = append(out, found{1 + strings.Count(masked[:m[2]], "\n"),
				strings.Join(strings.Fields(masked[m[2]:m[3]]), " "), l.instead[i]})
		}
	}
	return out
}

func (l *wordList) check(t *testing.T, file string, first int, text string) {
	t.Helper()
	for _, f := range l.find(text) {
		t.Errorf("%s:%d: %q; write: %s", strings.TrimPrefix(filepath.ToSlash(file), root+"/"), first+f.line-1, f.text,
			f.instead)
	}
}

// checkGo checks the comments and strings in the Go files of a folder, tests excepted.
func (l *wordList) checkGo(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		var s scanner.Scanner
		s.Init(set.AddFile(file, -1, len(src)), src, nil, scanner.ScanComments)
		text, first := "", 0
		flush := func() {
			l.check(t, file, first, text)
			text = ""
		}
		for {
			pos, kind, literal := s.Scan()
			if kind == token.ADD {
				continue
			}
			if kind != token.STRING {
				flush()
			}
			if kind == token.EOF {
				break
			}
			line := set.Position(pos).Line
			if kind != token.STRING && kind != token.COMMENT {
				continue
			}
			if text == "" {
				first = line
			}
			text += strings.Repeat("\n", line-first-strings.Count(text, "\n")) + plain(kind, literal)
			if kind == token.COMMENT {
				flush()
			}
		}
	}
}

// plain is the text of a literal.
func plain(kind token.Token, literal string) string {
	if kind == token.STRING && strings.HasPrefix(literal, `"`) {
		if s, err := strconv.Unquote(literal); err == nil {
			return strings.ReplaceAll(s, "\n", " ")
		}
	}
	return literal
}

// withoutBlocks empties fenced blocks: they show commands, the output of programs and lines of server logs.
func withoutBlocks(s string) string {
	lines := strings.Split(s, "\n")
	inside := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if inside || fence {
			lines[i] = ""
		}
		inside = inside != fence
	}
	return strings.Join(lines, "\n")
}
