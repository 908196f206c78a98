package cause

import "testing"

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
	}
	for id := range texts {
		if !used[id] {
			t.Errorf("prose/%s.md belongs to nothing", id)
		}
	}
}
