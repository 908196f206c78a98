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

// TestAffectedIsOnlyRead: diagnoses that run side by side ask for the list of causes, which must not change what they
// share.
func TestAffectedIsOnlyRead(t *testing.T) {
	for _, c := range All() {
		was := affected[c.ID]
		delete(affected, c.ID)
		All()
		if _, written := affected[c.ID]; written {
			t.Errorf("the list of causes writes the releases of %s", c.ID)
		}
		affected[c.ID] = was
	}
}
