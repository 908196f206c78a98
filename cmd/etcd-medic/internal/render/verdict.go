package render

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// verdictSection writes what the sources say as a whole: first on a page, and in short on its last line.
type verdictSection struct{ *page }

func (p verdictSection) write(v *compare.Verdict) {
	health, color := "inconclusive", text.FgYellow
	switch v.Health {
	case check.Healthy:
		health, color = "healthy", text.FgGreen
	case check.Unhealthy:
		health, color = "NOT HEALTHY", text.FgRed
	}
	line := p.paint(health, color, text.Bold)
	if string(v.Class) != health {
		line += ": " + string(v.Class)
	}
	if v.Cause != nil {
		line += ", cause " + string(*v.Cause)
	}
	if v.Certainty != nil {
		line += " (" + string(*v.Certainty) + ")"
	}
	p.line("%s", line)
	p.text("", v.Summary)
}

func (p verdictSection) firstBreak(b *compare.FirstBreak) {
	if b == nil {
		return
	}
	p.line("")
	where := breakPlace(b)
	at := string(b.Check) + " on " + plural.List(b.Member)
	if len(where) > 0 {
		at += ": " + strings.Join(where, ", ")
	}
	head := p.paint("FIRST BREAK", text.Bold) + "  "
	p.text(head, at)
	p.text(strings.Repeat(" ", columns(head)), "observed "+b.Observed+"; expected "+b.Expected)
}

// breakPlace returns where the first violation is: index, revision and bucket.
func breakPlace(b *compare.FirstBreak) (where []string) {
	if b.Index > 0 {
		where = append(where, "entry "+termIndex(b.Term, b.Index))
	}
	if b.Revision != nil {
		where = append(where, "revision "+revision(b.Revision))
	}
	if b.Bucket != "" {
		where = append(where, "bucket "+b.Bucket)
	}
	if len(b.Key) > 0 {
		where = append(where, "key "+quoted(b.Key))
	}
	return where
}

// word returns the verdict as one painted word.
func (p verdictSection) word(v *compare.Verdict) string {
	word, color := health(v)
	return p.paint(word, color, text.Bold)
}

// lastLine writes the verdict once more, next to the prompt.
func (p verdictSection) lastLine(r *compare.Report) { p.line("%s", p.inShort(r)) }

// inShort returns the verdict on one line. Where it is too long for a line, the
// class is left out, which the first sentence names, then the cause.
func (p verdictSection) inShort(r *compare.Report) string {
	v := &r.Verdict
	word, color := health(v)
	var names []string
	if !wordIsClass(v) {
		names = append(names, string(v.Class))
	}
	if v.Cause != nil && string(*v.Cause) != string(v.Class) {
		names = append(names, string(*v.Cause))
	}
	kept := ""
	if choice(r) && len(r.Best.Members) > 0 && v.Health != check.Healthy {
		kept = "keep " + strings.Join(r.Best.Members, " or ")
		if r.Best.Undecided != "" {
			kept = "undecided: " + strings.Join(r.Best.Members, " or ")
		}
	}
	for {
		s := strings.Join(names, ", ")
		if kept != "" && s != "" {
			s += "; "
		}
		if s += kept; s != "" {
			s = ": " + clean(s)
		}
		if room := p.o.width() - len(word); columns(s) <= room || len(names) == 0 {
			return p.paint(word, color, text.Bold) + brief(s, room)
		}
		names = names[1:]
	}
}

// health returns the verdict's word and its colour.
func health(v *compare.Verdict) (string, text.Color) {
	switch v.Health {
	case check.Healthy:
		return "HEALTHY", text.FgGreen
	case check.Unhealthy:
		return "NOT HEALTHY", text.FgRed
	}
	return "INCONCLUSIVE", text.FgYellow
}

// wordIsClass reports whether the word of the verdict is its class, which then needs no mention.
func wordIsClass(v *compare.Verdict) bool {
	word, _ := health(v)
	return strings.EqualFold(string(v.Class), word)
}

// leadingCause returns the cause that the verdict names, nil if it names none.
func leadingCause(r *compare.Report) *compare.Cause {
	if len(r.Causes) == 0 || r.Causes[0].Secondary || r.Verdict.Cause == nil {
		return nil
	}
	return &r.Causes[0]
}

// verdictSentence returns the cause with its certainty and the verdict's statement, each once.
func verdictSentence(r *compare.Report) string {
	v := &r.Verdict
	if c := leadingCause(r); c != nil {
		return fmt.Sprintf("%s (%s, %s). %s", c.Title, v.Class, c.Certainty, firstUpper(r, v.Says()))
	}
	if wordIsClass(v) {
		return v.Says()
	}
	class := string(v.Class)
	if v.Health == check.Unhealthy && v.Class != check.ClassBackupStale {
		class += ", cause unknown"
	}
	first, rest, more := strings.Cut(v.Says(), ". ")
	if first = fmt.Sprintf("%s (%s)", first, class); more {
		first += ". " + rest
	}
	return first
}

// firstUpper makes the first letter upper case; the name of a source stays as it is.
func firstUpper(r *compare.Report, s string) string {
	word, _, _ := strings.Cut(s, " ")
	if s == "" || strings.ContainsAny(word, "0123456789:/.-") {
		return s
	}
	word = strings.TrimSuffix(strings.TrimRight(word, ","), "'s")
	for i := range r.Sources {
		if name, _, _ := strings.Cut(r.Sources[i].Name, " "); name == word {
			return s
		}
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// namedCause returns the cause whose title begins the summary of the verdict, nil if there is none.
func namedCause(r *compare.Report) *compare.Cause {
	if r.Verdict.Statement == "" {
		return nil
	}
	return leadingCause(r)
}
