package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// factGroup is one fact: the findings of one check with the same statement about several members or objects.
type factGroup struct {
	findings []*check.Finding
	// titles are the statements without the member.
	titles []string
	// members are the members of the statement, in order.
	members []string
}

// grouped groups findings of one check that have the same explanation.
func grouped(all []check.Finding) []*factGroup {
	var out []*factGroup
	for i := range all {
		f := &all[i]
		at := slices.IndexFunc(out, func(g *factGroup) bool {
			h := g.findings[0]
			return h.Check == f.Check && h.Severity == f.Severity && h.Explanation == f.Explanation && sameRemedy(h, f)
		})
		if at < 0 {
			at = len(out)
			out = append(out, &factGroup{})
		}
		out[at].add(f)
	}
	return out
}

// sameRemedy reports whether what to do is the same, each for its own member.
func sameRemedy(a, b *check.Finding) bool {
	return slices.EqualFunc(a.Remedy, b.Remedy, func(x, y check.Remedy) bool {
		if x.Text == y.Text {
			return x.Command.Equal(y.Command)
		}
		return ofMember(a, x.Text) == ofMember(b, y.Text)
	})
}

// ofMember returns a text without the name of the one member that a finding is about.
func ofMember(f *check.Finding, text string) string {
	if len(f.Members) != 1 {
		return text
	}
	words := strings.Fields(text)
	for i, w := range words {
		if w == f.Members[0] {
			words[i] = "…"
		}
	}
	return strings.Join(words, " ")
}

// remedies are those of all findings, each once.
func (g *factGroup) remedies() (out []check.Remedy) {
	for _, f := range g.findings {
		for _, r := range f.Remedy {
			if !slices.ContainsFunc(out, func(o check.Remedy) bool {
				return o.Text == r.Text && o.Command.Equal(r.Command)
			}) {
				out = append(out, r)
			}
		}
	}
	return out
}

func (g *factGroup) add(f *check.Finding) {
	g.findings = append(g.findings, f)
	if t := f.BareTitle(); !slices.Contains(g.titles, t) {
		g.titles = append(g.titles, t)
	}
	for _, m := range f.Members {
		if !slices.Contains(g.members, m) {
			g.members = append(g.members, m)
		}
	}
}

// title says a fact once, of all members and things that it is true of.
func (g *factGroup) title() string {
	if len(g.findings) == 1 {
		return g.findings[0].Title
	}
	of := ""
	if g.findings[0].BareTitle() != g.findings[0].Title {
		of = plural.List(g.members) + ": "
	}
	words, others, ok := g.differing()
	switch {
	case len(g.titles) == 1:
		return of + g.titles[0]
	case ok:
		return of + words + "; the same holds for " + plural.List(others)
	}
	said := []string{g.titles[0]}
	for _, t := range g.titles[1:] {
		head, _, _ := strings.Cut(g.titles[0], ": ")
		said = append(said, strings.TrimPrefix(t, head+": "))
	}
	return of + strings.Join(said, "; ")
}

// differing returns the first title and the word in which each other one differs from it; ok is false if they differ in
// more.
func (g *factGroup) differing() (first string, others []string, ok bool) {
	base, at := strings.Fields(g.titles[0]), -1
	for _, t := range g.titles[1:] {
		words := strings.Fields(t)
		if len(words) != len(base) {
			return "", nil, false
		}
		for i := range words {
			switch {
			case words[i] == base[i]:
			case at >= 0 && at != i:
				return "", nil, false
			default:
				at = i
			}
		}
		if at >= 0 {
			others = append(others, strings.TrimRight(words[at], ",;:"))
		}
	}
	return g.titles[0], others, at >= 0 && isName(base[at])
}

// isName reports whether a word is the ID or path of an object, and not a quantity.
func isName(word string) bool {
	_, err := strconv.Atoi(word)
	return err != nil
}

// ids returns the numbers of the findings, consecutive ones as a range.
func (g *factGroup) ids() string {
	var all []string
	for _, f := range g.findings {
		all = append(all, f.ID)
	}
	return strings.Join(ranges(all), ", ")
}

// ranges shortens three and more consecutive numbers: M07-1 to M07-9.
func ranges(ids []string) (out []string) {
	for i := 0; i < len(ids); {
		to := i
		for to+1 < len(ids) && follows(ids[to], ids[to+1]) {
			to++
		}
		if to-i < 2 {
			out = append(out, ids[i])
			i++
			continue
		}
		out = append(out, ids[i]+" to "+ids[to])
		i = to + 1
	}
	return out
}

// follows reports whether a finding's number is the next one of the same check.
func follows(a, b string) bool {
	check, n, _ := strings.Cut(a, "-")
	other, m, _ := strings.Cut(b, "-")
	x, errX := strconv.Atoi(n)
	y, errY := strconv.Atoi(m)
	return check == other && errX == nil && errY == nil && y == x+1
}

// evidenceLine is evidence that several members share at one place.
type evidenceLine struct {
	place string
	seen  []seen
}

type seen struct {
	what    string
	members []string
}

// evidenceLines groups the rows that differ only in their member.
func evidenceLines(g *factGroup) (out []*evidenceLine, omitted int) {
	common := g.expected()
	for _, f := range g.findings {
		omitted += f.More
		for i := range f.Evidence {
			e := f.Evidence[i]
			member, observed := e.Member, humanSize(&e)
			e.Member, e.Observed = "", ""
			place := evidenceText(&e, common)
			at := slices.IndexFunc(out, func(l *evidenceLine) bool { return l.place == place })
			if at < 0 {
				at = len(out)
				out = append(out, &evidenceLine{place: place})
			}
			out[at].add(member, observed)
		}
	}
	return out, omitted
}

func (l *evidenceLine) add(member, what string) {
	at := slices.IndexFunc(l.seen, func(s seen) bool { return s.what == what })
	if at < 0 {
		l.seen = append(l.seen, seen{what: what})
		at = len(l.seen) - 1
	}
	if member != "" && !slices.Contains(l.seen[at].members, member) {
		l.seen[at].members = append(l.seen[at].members, member)
	}
}

func (l *evidenceLine) text() string {
	if len(l.seen) == 1 {
		s := &l.seen[0]
		return strings.TrimSpace(plural.List(s.members)+" "+l.place) + tail(s.what)
	}
	var parts []string
	for i := range l.seen {
		parts = append(parts, strings.TrimSpace(plural.List(l.seen[i].members)+" "+l.seen[i].what))
	}
	return l.place + tail(strings.Join(parts, "; "))
}

func tail(what string) string {
	if what == "" {
		return ""
	}
	return ": " + what
}

// humanSize returns the observed value, with a size in readable units.
func humanSize(e *check.Evidence) string {
	if n, err := strconv.ParseInt(e.Observed, 10, 64); err == nil && e.Field == "size" {
		return plural.Size(n)
	}
	return e.Observed
}

// expected returns the expectation common to all rows of the group, "" if they differ.
func (g *factGroup) expected() string {
	common := commonExpected(g.findings[0].Evidence)
	for _, f := range g.findings[1:] {
		if commonExpected(f.Evidence) != common {
			return ""
		}
	}
	return common
}

// where returns the members and the entry, if the title does not name them.
func (g *factGroup) where() string {
	title, f := g.title(), g.findings[0]
	var at []string
	var unsaid []string
	for _, m := range g.members {
		if !strings.Contains(title, m) {
			unsaid = append(unsaid, m)
		}
	}
	if len(unsaid) > 0 {
		at = append(at, plural.List(g.members))
	}
	if len(g.findings) == 1 && f.At.Index > 0 && !strings.Contains(title, "entry") {
		at = append(at, "entry "+termIndex(f.At.Term, f.At.Index))
	}
	if len(g.findings) == 1 && f.At.Revision != nil {
		at = append(at, "revision "+revision(f.At.Revision))
	}
	if len(at) == 0 {
		return ""
	}
	return " (" + strings.Join(at, ", ") + ")"
}
