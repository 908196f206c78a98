package render

import (
	"bytes"
	"strings"
	"testing"
)

func TestHanging(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"short", 1, "KEEP   short\n"},
		{strings.Repeat("word ", 30), 1, "KEEP   " + strings.TrimSpace(strings.Repeat("word ", 14)) + " …\n"},
		{"two\nlines  and\x1b[31m red", 1, "KEEP   two lines and\\u001b[31m red\n"},
	} {
		var b bytes.Buffer
		p := newPage(&b, Options{Width: 80})
		p.hanging("KEEP   ", c.s, c.most)
		if err := p.flush(); err != nil || b.String() != c.want {
			t.Errorf("%q, want %q (%v)", b.String(), c.want, err)
		}
		for line := range strings.Lines(b.String()) {
			if len([]rune(line)) > 81 {
				t.Errorf("%d columns: %q", len([]rune(line)), line)
			}
		}
	}
}
