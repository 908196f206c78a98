package serverlog

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"testing"
)

// TestFilesParse: every file reads to its end without an error.
func TestFilesParse(t *testing.T) {
	if _, err := catalogue(); err != nil {
		t.Fatal(err)
	}
	files, err := texts.ReadDir("messages")
	if err != nil || len(files) != len(topics) {
		t.Errorf("%d files, %d topics, %v", len(files), len(topics), err)
	}
}

// TestParseRefuses: what a section must not hold is an error with the number of its line.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"# T\n\n## a\n\nmeans\n\nmore\n":     "line 7: a second paragraph: \"more\"",
		"## a\n- cause: b\n":                 "line 2: unknown property \"cause\"",
		"## a\n- versions\n":                 "line 2: a property without a value: \"versions\"",
		"## a\n```sh\netcd\n```\n":           "line 3: a block \"sh\", want match or log",
		"## a\n\nmeans\n\n```log\n## x\n```": "",
	} {
		got := ""
		if _, err := parse(text); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestEveryPatternIsTried: each pattern that is more than plain text matches an example of its message, so that none is
// there that was never tried, and each has a word that spares ordinary lines.
func TestEveryPatternIsTried(t *testing.T) {
	for _, m := range All() {
		for _, p := range m.Patterns {
			re := regexp.MustCompile("(?i)" + p)
			if len(needs(re.String())) == 0 {
				t.Errorf("%s: %s has no word that must be there", m.ID, p)
			}
			literal, err := syntax.Parse(p, syntax.Perl)
			if err != nil || literal.Op == syntax.OpLiteral {
				continue
			}
			if !slices.ContainsFunc(m.Examples, func(l string) bool { return re.MatchString(plain(l)) }) {
				t.Errorf("%s: no example for %s", m.ID, p)
			}
		}
	}
}

// TestNeeds: the words are such that a text without all of them cannot match.
func TestNeeds(t *testing.T) {
	for pattern, want := range map[string][]string{
		`(?i)tocommit\((\d+)\) is out of range`: {") is out of range"},
		`(?i)Failed|broken`:                     {"failed", "broken"},
		`(?i)a(?:bcd|xyz) end`:                  {" end"},
		`(?i)a(?:bc|xy)e`:                       nil,
		`\d+|word`:                              nil,
		`(?:longer)?`:                           nil,
		`(?:longer)+`:                           {"longer"},
		`(?i)(?:cannot|failed to) commit`:       {" commit"},
	} {
		if got := needs(pattern); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// TestFinderIsTheSlowWay: the fast way finds what trying every pattern finds, in all examples.
func TestFinderIsTheSlowWay(t *testing.T) {
	f := problemFinder()
	for _, m := range All() {
		for _, line := range m.Examples {
			line = plain(line)
			var slow, fast []string
			for _, p := range f.patterns {
				if p.re.MatchString(line) {
					slow = append(slow, p.re.String())
				}
			}
			f.in(line, func(p compiled, _ []string) bool { fast = append(fast, p.re.String()); return true })
			if !slices.Equal(slow, fast) {
				t.Errorf("%s: %q, want %q", line, fast, slow)
			}
		}
	}
}

// TestCommandsOfSteps: what stands between backquotes in a step is a command to type.
func TestCommandsOfSteps(t *testing.T) {
	found, err := parse("## a\n\n1. run `one x` or `two`\n2. wait\n")
	if err != nil || len(found) != 1 || !slices.Equal(found[0].Type, []string{"one x", "two"}) ||
		!slices.Equal(found[0].Do, []string{"run one x or two", "wait"}) {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestStamped: only a time with a line after it is removed.
func TestStamped(t *testing.T) {
	const at = "2026-09-09T09:09:09Z"
	for line, want := range map[string]string{"a b": "a b", at: at, at + " x": "x", at + " stderr F x": "x",
		"2026-09-09T09:09:9Z x": "2026-09-09T09:09:9Z x", "2026/09/09T09:09:09Z x": "2026/09/09T09:09:09Z x", "": ""} {
		got, when := stamped(line)
		if got != want || when.IsZero() != (got == line) {
			t.Errorf("%q: %q at %v, want %q", line, got, when, want)
		}
	}
}
