package check

import (
	"os"
	"regexp"
	"testing"
)

// TestTexts: every file reads, each has a title and a text, and files and values name the same IDs.
func TestTexts(t *testing.T) {
	if errTexts != nil {
		t.Fatal(errTexts)
	}
	used := map[string]bool{}
	for _, c := range All() {
		used[string(c.ID)] = true
		if c.Title == "" || len(c.Doc) < 60 {
			t.Errorf("prose/%s.md: title %q, text %q", c.ID, c.Title, c.Doc)
		}
		source, err := os.ReadFile(c.File)
		if err != nil || !regexp.MustCompile(`\bID: +`+string(c.ID)+`\b`).Match(source) {
			t.Errorf("%s is not defined in %q: %v", c.ID, c.File, err)
		}
	}
	for id := range texts {
		if !used[id] {
			t.Errorf("prose/%s.md belongs to nothing", id)
		}
	}
}
