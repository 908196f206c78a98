package prose_test

import (
	"go/scanner"
	"go/token"
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

// stringsClean are folders of Go files whose string literals are plain: help, titles, explanations, messages.
var stringsClean = []string{
	"cmd/etcd-medic/internal/cli", "compare", "compare/cause", "compare/check", "compare/preflight",
}

// clean are folders of Go files whose comments are plain as well. Add a folder once its texts are; none is taken off.
var clean = []string{
	"internal/prose",
}

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

// allowed are uses of such words that are right, with the reason.
var allowed = []struct{ pattern, reason string }{
	{`(?:lag|lags|lagged|lagging|far|is|are) behind`, "lag"},
	{`(?:\d+|N|two|many) (?:revisions?|entries) behind`, "lag, in numbers"},
	{`behind by`, "lag, in numbers"},
	{`-behind`, "a flag or a name"},
	{`behind (?:Kubernetes|a (?:proxy|load balancer|symbolic link|gateway)|links?|symbolic links)`,
		"a place, not an order"},
	{`stands? for`, "is an abbreviation for"},
}

// TestPlainWords: the texts of users, and the Go folders that are done, hold no word that only we understand.
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
	for _, dir := range stringsClean {
		list.checkGo(t, dir, token.STRING)
	}
	for _, dir := range clean {
		list.checkGo(t, dir, token.STRING, token.COMMENT)
	}
}

// TestWordList: the list finds each word, also across lines, and lets the exceptions pass.
func TestWordList(t *testing.T) {
	list := newWordList(t)
	for _, c := range []struct {
		text string
		line int
	}{
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

type wordList struct{ words, allowed []*regexp.Regexp }

func newWordList(t *testing.T) *wordList {
	t.Helper()
	compiled := func(pattern string) *regexp.Regexp {
		p := strings.ReplaceAll(pattern, " ", `[\s/*]+`)
		return regexp.MustCompile(`(?i)(?:^|[^\w-])(` + p + `)(?:[^\w-]|$)`)
	}
	list := &wordList{}
	for _, w := range words {
		list.words = append(list.words, compiled(w.pattern))
	}
	for _, a := range allowed {
		if a.reason == "" {
			t.Errorf("no reason for %q", a.pattern)
		}
		list.allowed = append(list.allowed, regexp.MustCompile(`(?i)`+strings.ReplaceAll(a.pattern, " ", `\s+`)))
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
				strings.Join(strings.Fields(masked[m[2]:m[3]]), " "), words[i].instead})
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

// checkGo checks the tokens of some kinds in the Go files of a folder, tests excepted.
func (l *wordList) checkGo(t *testing.T, dir string, kinds ...token.Token) {
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
			if !slices.Contains(kinds, kind) {
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
