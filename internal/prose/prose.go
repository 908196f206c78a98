// Package prose reads the texts of checks, causes and rules. They are Markdown files next to the code, one for each ID,
// so that they can be edited without Go:
//
//	# the title, one line
//
//	Paragraphs, wrapped as the writer likes.
//
//	- name: a fact; a name may appear more than once
//	  and a fact continues in lines that are indented by two spaces
package prose

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Text is the content of one file.
type Text struct {
	// Title is the heading.
	Title string
	// Doc is the paragraphs, each in one line, with an empty line between them.
	Doc string
	// Facts are the items of the list at the end, by name, in the order of the file.
	Facts map[string][]string
}

// Fact returns the first fact of a name, or "".
func (t *Text) Fact(name string) string {
	if f := t.Facts[name]; len(f) > 0 {
		return f[0]
	}
	return ""
}

// Load reads all files NAME.md of a folder, by NAME. Facts may only have the given names. With an error it also returns
// the texts that it could read.
func Load(files fs.FS, dir string, facts ...string) (map[string]Text, error) {
	names, err := fs.Glob(files, path.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	out := map[string]Text{}
	for _, name := range names {
		b, e := fs.ReadFile(files, name)
		if e != nil {
			return out, e
		}
		t, e := Parse(string(b), facts...)
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %w", name, e)
		}
		out[strings.TrimSuffix(path.Base(name), ".md")] = t
	}
	return out, err
}

// Parse reads one text.
func Parse(s string, facts ...string) (Text, error) {
	t := Text{Facts: map[string][]string{}}
	head, body, _ := strings.Cut(s, "\n")
	title, ok := strings.CutPrefix(head, "# ")
	if t.Title = strings.TrimSpace(title); !ok || t.Title == "" {
		return t, fmt.Errorf("line 1 is %q; expected a heading, # and the title", head)
	}
	var paragraphs []string
	var para, fact []string
	end := func() {
		if len(para) > 0 {
			paragraphs = append(paragraphs, strings.Join(para, " "))
		}
		if len(fact) > 1 {
			t.Facts[fact[0]] = append(t.Facts[fact[0]], strings.Join(fact[1:], " "))
		}
		para, fact = nil, nil
	}
	number := 1
	for line := range strings.Lines(body) {
		number++
		line = strings.TrimRight(line, " \t\r\n")
		item, isItem := strings.CutPrefix(line, "- ")
		switch {
		case line == "":
			end()
		case isItem:
			end()
			name, text, named := strings.Cut(item, ": ")
			if !named || !slices.Contains(facts, name) {
				return t, fmt.Errorf("line %d names the fact %q; expected one of %s", number, name,
					strings.Join(facts, ", "))
			}
			fact = []string{name, text}
		case fact != nil && strings.HasPrefix(line, "  "):
			fact = append(fact, strings.TrimSpace(line))
		case fact != nil || len(t.Facts) > 0:
			return t, fmt.Errorf("line %d is text after the facts", number)
		default:
			para = append(para, strings.TrimSpace(line))
		}
	}
	end()
	t.Doc = strings.Join(paragraphs, "\n\n")
	return t, nil
}
