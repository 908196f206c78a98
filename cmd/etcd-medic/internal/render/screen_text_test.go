package render

import (
	"slices"
	"strings"
	"testing"
)

// TestTextEndsOutsideParentheses: a text that is too long ends before a parenthesis or after it, never inside.
func TestTextEndsOutsideParentheses(t *testing.T) {
	s := "the backup is not comparable with x (/no/dir: found nothing; expected a dir (with member/ in it)); more"
	want := []string{s, strings.TrimSuffix(s, "; more"), "the backup is not comparable with x"}
	if got := endings(s, clauseEnd); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	words := strings.Fields("One sentence that fits here (it says why: a reason. More of it) and much more text")
	if got := strings.Join(wholeClauses(words, 0, 0, 30, 2), " "); strings.Contains(got, "…") {
		t.Errorf("%q ends inside of parentheses", got)
	}
	words = strings.Fields("One sentence that fits here (it says why). Then comes more text than there is room for")
	if got := strings.Join(wholeClauses(words, 0, 0, 30, 2), " "); got !=
		"One sentence that fits here (it says why) …" {
		t.Errorf("%q", got)
	}
}
