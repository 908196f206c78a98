package release

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Range is some releases in a text for people, such as "3.4.20 - 3.4.21, 3.5.5 (with auth)". The note says what the
// releases do not: other programs, settings, or which of several defects. Without releases the note says everything.
type Range struct {
	In   Spans
	Note string
}

var startsWithReleases = regexp.MustCompile(`^(?:[\d(]|up to \d|all\b)`)

// ParseRange reads a list of releases, separated by commas, with or without a note in parentheses. Each item of the
// list is one release (3.5.12), a minor version (3.5.x), a span (3.5.0 - 3.5.12), everything up to a release (up to
// 3.5.12), everything from one on (3.5.12 and later), or all. Any other text is a note without releases.
func ParseRange(text string) (Range, error) {
	if !startsWithReleases.MatchString(text) {
		if text == "" {
			return Range{}, errors.New("a range without releases and without a note")
		}
		return Range{Note: text}, nil
	}
	list, note, hasNote := strings.Cut(text, " (")
	note, ended := strings.CutSuffix(note, ")")
	if hasNote != ended || hasNote && note == "" || strings.ContainsAny(note, "()") {
		return Range{}, fmt.Errorf("%q: one note in parentheses may be at the end", text)
	}
	r := Range{Note: note}
	for _, item := range strings.Split(list, ",") {
		s, err := parseSpan(strings.TrimSpace(item))
		if err != nil {
			return Range{}, fmt.Errorf("%q: %w", text, err)
		}
		r.In = append(r.In, s)
	}
	return r, nil
}

func parseSpan(item string) (Span, error) {
	if item == "all" {
		return Span{}, nil
	}
	first, isFrom := strings.CutSuffix(item, " and later")
	last, isUpTo := strings.CutPrefix(first, "up to ")
	if from, to, ok := strings.Cut(last, " - "); ok {
		first, last = from, to
	}
	a, err := Parse(first)
	if isUpTo {
		a, err = Version{}, nil
	}
	if err != nil {
		return Span{}, err
	}
	b, err := Parse(last)
	if err != nil {
		return Span{}, err
	}
	s := Span{From: a.first, Until: next(b.last)}
	if isFrom {
		s.Until = Release{}
	}
	if isFrom && isUpTo || s.Until != (Release{}) && !s.From.Before(s.Until) {
		return Span{}, fmt.Errorf("%q is not a span of releases", item)
	}
	return s, nil
}

// next returns the first release after r.
func next(r Release) Release {
	if r.Patch == newest {
		return Release{r.Minor + 1, 0}
	}
	return Release{r.Minor, r.Patch + 1}
}

// String returns the text that ParseRange reads.
func (r Range) String() string {
	var items []string
	for _, s := range r.In {
		items = append(items, s.text())
	}
	out := strings.Join(items, ", ")
	if r.Note == "" || out == "" {
		return out + r.Note
	}
	return out + " (" + r.Note + ")"
}

func (s Span) text() string {
	to := previous(s.Until)
	switch {
	case s == Span{}:
		return "all"
	case s.Until == Release{}:
		return s.From.String() + " and later"
	case s.From == Release{}:
		return "up to " + patchOrX(to)
	case s.From == to:
		return to.String()
	case s.From.Patch == 0 && to == Release{s.From.Minor, newest}:
		return patchOrX(to)
	}
	return s.From.String() + " - " + patchOrX(to)
}

func patchOrX(r Release) string {
	if r.Patch == newest {
		return fmt.Sprintf("3.%d.x", r.Minor)
	}
	return r.String()
}

// MarshalText writes the text, so that JSON documents hold it as a string.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (r *Range) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRange(string(text))
	return err
}

// Include reports whether the version is in one of the ranges. A note may exclude releases of its range, or include
// others if it is alone, so a version that depends on a note is unknown.
func Include(ranges []Range, v Version) Answer {
	out := No
	for _, r := range ranges {
		switch in := r.In.Include(v); {
		case in == Yes && r.Note == "":
			return Yes
		case in != No || len(r.In) == 0:
			out = Unknown
		}
	}
	return out
}

// Upgrades returns the fixes with only those releases that one of the servers can be upgraded to. A server that has the
// fix needs none. Fixes without releases remain: only people can decide about them.
func Upgrades(fixes []Range, servers ...Version) (out []Range) {
	for _, f := range fixes {
		left := Range{Note: f.Note}
		for _, s := range f.In {
			if slices.ContainsFunc(servers, func(v Version) bool { return v.lacks(fixes, s.From) }) {
				left.In = append(left.In, s)
			}
		}
		if len(left.In) > 0 || len(f.In) == 0 {
			out = append(out, left)
		}
	}
	return out
}

// lacks reports whether the server may be older than a release with a fix, and does not have another one certainly.
func (v Version) lacks(fixes []Range, fix Release) bool {
	first, last := v.bounds()
	for _, f := range fixes {
		for _, s := range f.In {
			if first.Minor == last.Minor && s.From.Minor == first.Minor && !first.Before(s.From) {
				return false
			}
		}
	}
	return first.Before(fix)
}

// Text joins the texts of ranges.
func Text(ranges []Range) string {
	var b strings.Builder
	for i, r := range ranges {
		switch {
		case i == 0:
		case r.Note == "" && ranges[i-1].Note == "":
			b.WriteString(", ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(r.String())
	}
	return b.String()
}
