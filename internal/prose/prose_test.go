package prose_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/etcd-medic/etcd-medic/internal/prose"
)

// TestParse: title, paragraphs and facts are read as they are wrapped, and what does not fit is an error with its line.
func TestParse(t *testing.T) {
	got, err := prose.Parse("# a title\n\none\ntwo\n\nthree\n\n- see: x\n- loss: much\n  more\n- see: y\n", "see",
		"loss")
	want := prose.Text{Title: "a title", Doc: "one two\n\nthree",
		Facts: map[string][]string{"see": {"x", "y"}, "loss": {"much more"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got.Fact("loss") != "much more" || got.Fact("see") != "x" || got.Fact("none") != "" {
		t.Errorf("facts %q %q %q", got.Fact("loss"), got.Fact("see"), got.Fact("none"))
	}
	for text, want := range map[string]string{
		"":                            "expected a heading",
		"no heading\n":                "expected a heading",
		"# \n":                        "expected a heading",
		"# t\n\n- lost: x\n":          `line 3 names the fact "lost"`,
		"# t\n\n- see\n":              `line 3 names the fact "see"`,
		"# t\n\n- see: x\n\nbehind\n": "line 5 is text after the facts",
	} {
		if _, err := prose.Parse(text, "see"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestLoad: every file of the folder is read, one that is wrong is named, and the others are there all the same.
func TestLoad(t *testing.T) {
	files := fstest.MapFS{
		"p/A1.md": {Data: []byte("# first\n\ndoc\n")}, "p/B2.md": {Data: []byte("second\n")},
		"p/note.txt": {Data: []byte("none")}, "C3.md": {Data: []byte("# elsewhere\n")},
	}
	got, err := prose.Load(files, "p")
	if err == nil || !strings.Contains(err.Error(), "p/B2.md: line 1") {
		t.Errorf("error %v", err)
	}
	if len(got) != 2 || got["A1"].Title != "first" || got["A1"].Doc != "doc" {
		t.Errorf("texts %+v", got)
	}
}
