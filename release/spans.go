package release

import (
	"cmp"
	"slices"
	"strings"
)

// Span is the releases from From up to, but not including, Until. A zero Until means no end. Open is true for releases
// that do not exist yet, such as those after an alpha.
type Span struct {
	From, Until Release
	Open        bool
}

// Spans are releases with something in common. A pre-release counts as its release.
type Spans []Span

// piece is a range of releases with one answer, both ends included.
type piece struct {
	first, last Release
	answer      Answer
}

// previous returns the last release before r. r must not be 3.0.0.
func previous(r Release) Release {
	if r.Patch > 0 {
		return Release{r.Minor, r.Patch - 1}
	}
	return Release{r.Minor - 1, newest}
}

// changes reports whether the answer can change at the bound of a span, within the releases after first up to last.
func changes(first, bound, last Release) bool {
	return bound != (Release{}) && first.Before(bound) && !last.Before(bound)
}

// pieces splits the releases from first to last where the answer changes.
func (s Spans) pieces(first, last Release) []piece {
	cuts := []Release{first}
	for _, x := range s {
		for _, at := range []Release{x.From, x.Until} {
			if changes(first, at, last) {
				cuts = append(cuts, at)
			}
		}
	}
	slices.SortFunc(cuts, func(a, b Release) int {
		return cmp.Or(cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.Patch, b.Patch))
	})
	cuts = slices.Compact(cuts)
	var out []piece
	for i, from := range cuts {
		to := last
		if i+1 < len(cuts) {
			to = previous(cuts[i+1])
		}
		out = append(out, piece{from, to, s.at(from)})
	}
	return out
}

// at returns the answer for one release.
func (s Spans) at(r Release) Answer {
	for _, x := range s {
		if !r.Before(x.From) && (x.Until == (Release{}) || r.Before(x.Until)) {
			if x.Open {
				return Unknown
			}
			return Yes
		}
	}
	return No
}

// Include reports whether the version is in the spans.
func (s Spans) Include(v Version) Answer {
	first, last := v.bounds()
	answer := s.at(first)
	for _, x := range s { // replay asks for each entry: nothing is allocated here
		for _, at := range [...]Release{x.From, x.Until} {
			if changes(first, at, last) && s.at(at) != answer {
				return Unknown
			}
		}
	}
	return answer
}

// Not returns the releases outside of the spans. Releases of open spans are left out, because nothing is known of them.
func (s Spans) Not() (out Spans) {
	for _, p := range s.pieces(Release{}, Release{newest, newest}) {
		if p.answer != No {
			continue
		}
		x := Span{From: p.first}
		if p.last.Minor != newest {
			x.Until = next(p.last)
		}
		out = append(out, x)
	}
	return out
}

// String lists the spans, as "3.4.27 - 3.4.x, 3.5.10 and later".
func (s Spans) String() string {
	var parts []string
	for _, x := range s {
		if x.Open {
			continue
		}
		switch {
		case x.Until == (Release{}):
			parts = append(parts, x.From.String()+" and later")
		case x.From == (Release{}):
			parts = append(parts, "before "+x.Until.String())
		default:
			parts = append(parts, Between(x.From, previous(x.Until)).String())
		}
	}
	return strings.Join(parts, ", ")
}

// since returns the spans of a rule that was introduced in these releases: each up to the next minor version, the last
// without end.
func since(from ...Release) Spans {
	var out Spans
	for i, r := range from {
		s := Span{From: r}
		if i+1 < len(from) {
			s.Until = Release{r.Minor + 1, 0}
		}
		out = append(out, s)
	}
	return out
}

// until returns the span of a rule that was removed in a release.
func until(r Release) Spans { return Spans{{Until: r}} }

// within returns the span from a release up to, but not including, another.
func within(from, to Release) Spans { return Spans{{From: from, Until: to}} }
