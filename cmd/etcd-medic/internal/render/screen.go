package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// screenCommands is the maximum number of commands under DO NOW.
const screenCommands = 3

// screenRows is the height of the smallest terminal, less one row for the prompt.
const screenRows = 23

// screen writes the answer for one terminal of 80 columns and 24 rows: what is wrong, which member to keep, and what to
// type next.
func (p *page) screen(r *compare.Report) {
	p.place(r)
	p.sentence(p.verdictWord(&r.Verdict)+": ", verdictSentence(r), p.room.wrong)
	p.badSources(r.Sources)
	p.keep(r)
	p.screenTable(r)
	p.breakLines(r.Verdict.FirstBreak)
	p.doNow(r.Next)
	p.moreLine(r)
	p.line("%s", p.verdictLine(r))
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

// verdictWord returns the verdict as one painted word.
func (p *page) verdictWord(v *compare.Verdict) string {
	word, color := health(v)
	return p.paint(word, color, text.Bold)
}

// verdictSentence returns the cause with its certainty and the verdict's statement, each once.
func verdictSentence(r *compare.Report) string {
	v := &r.Verdict
	if c := leadingCause(r); c != nil {
		return fmt.Sprintf("%s (%s, %s). %s", c.Title, v.Class, c.Certainty, firstUpper(v.Says()))
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

// firstUpper makes the first letter upper case; a member's name stays as it is.
func firstUpper(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if s == "" || strings.ContainsAny(word, "0123456789:/.-") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// verdictLine returns the last line: the verdict once more, next to the prompt. Where it is too long for a line, the
// class is left out, which the first sentence names, then the cause.
func (p *page) verdictLine(r *compare.Report) string {
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

// keep says which member to keep and what choosing it gives up.
func (p *page) keep(r *compare.Report) {
	b := r.Best
	if !choice(r) {
		return
	}
	p.line("")
	switch len(b.Members) {
	case 0:
		p.hanging("KEEP   ", "undecided: "+strings.TrimPrefix(b.Why, "content cannot decide: "), p.room.wrong)
		return
	case 1:
		p.hanging("KEEP   ", b.Members[0]+": "+whyOf(b, b.Members[0]), p.room.wrong)
	default:
		said := ", equally good: " + eachOf(b, b.Members[0])
		if b.Undecided != "" {
			said = ", undecided: " + b.Undecided
		}
		p.hanging("KEEP   ", strings.Join(b.Members, " or ")+said, p.room.wrong)
	}
	p.hanging("LOSES  ", losesText(&b.Lost), p.room.wrong)
}

// choice reports whether it matters which member is kept.
func choice(r *compare.Report) bool {
	bad := r.Verdict.Health == check.Unhealthy
	return r.Best != nil && len(r.Best.Ranking) > 1 && (bad || len(r.Best.Members) < len(r.Best.Ranking))
}

// whyOf returns the reason to keep a member.
func whyOf(b *compare.Best, member string) string {
	for _, row := range b.Ranking {
		if row.Member == member && len(row.Reasons) > 0 {
			return strings.Join(row.Reasons, "; ")
		}
	}
	return b.Why
}

// eachOf says of several members what is said of one.
func eachOf(b *compare.Best, member string) string {
	if slices.ContainsFunc(b.Ranking, func(r compare.Rank) bool { return r.Member == member && r.HoldsAll }) {
		return "each " + whyOf(b, member)
	}
	return whyOf(b, member)
}

func losesText(l *compare.Lost) string {
	switch none := l.None(); {
	case none && len(l.Unproven) == 0:
		return l.String()
	case none:
		return "nothing that is known" + l.Condition() + ". Not proven: " + strings.Join(l.Unproven, "; ")
	}
	return l.String() + "; --full lists them"
}

// rows writes a table. Its last column takes more than one line if there is room; short has other
// texts for it where there is none.
// Columns without any value are left out.
func (p *page) rows(head []string, rows [][]string, short []string) {
	wide := columnWidths(head, rows)
	p.line("%s", p.paint(strings.TrimRight(paddedCells(head, wide)+head[len(head)-1], " "), text.Bold))
	for i, row := range rows {
		cells, last := paddedCells(row, wide), clean(row[len(row)-1])
		if wide[len(row)-1] == 0 {
			last = ""
		}
		if p.o.width()-columns(cells) < wrapFrom {
			p.line("%s", strings.TrimRight(cells+brief(last, p.o.width()-columns(cells)), " "))
			continue
		}
		p.inCell(cells, last, short[min(i, len(short)):])
	}
}

// columnWidths returns the width of each column, 0 for one without any value.
func columnWidths(head []string, rows [][]string) []int {
	wide := make([]int, len(head))
	for c := range head {
		for _, row := range rows {
			if row[c] != "-" || c == len(head)-1 {
				wide[c] = max(wide[c], columns(row[c]), len(head[c]))
			}
		}
	}
	return wide
}

// wrapFrom is the narrowest last column, in columns of the terminal, in which text takes a second line.
const wrapFrom = 16

// paddedCells returns a row without its last cell, each cell padded to the width of its column.
func paddedCells(row []string, wide []int) string {
	var b strings.Builder
	for c, cell := range row[:len(row)-1] {
		if wide[c] > 0 {
			b.WriteString(text.Pad(clean(cell), wide[c]+2, ' '))
		}
	}
	return b.String()
}

// doNow shows the first commands: those of this program that repair, else those that inspect, else those to type by
// hand.
func (p *page) doNow(next []compare.Next) {
	if len(next) == 0 {
		return
	}
	p.line("")
	kind := byHand
	for i := range next {
		kind = max(kind, kindOf(&next[i]))
	}
	head := p.paint("DO NOW", text.Bold)
	if next[0].Command.IsZero() {
		p.clauses(head+" ", next[0].Text, p.room.sentence)
	} else {
		p.line("%s", head)
	}
	shown := 0
	for i := range next {
		if n := &next[i]; kindOf(n) == kind && !n.Command.IsZero() && shown < screenCommands {
			if shown++; shown <= p.room.texts {
				p.clauses("  ", n.Text, p.room.sentence)
			}
			p.command("    ", n.Command)
		}
	}
}

// stepKind is the kind of a step of a report; a higher one is shown first.
type stepKind int

const (
	nothing stepKind = iota
	byHand
	looks
	repairs
)

func kindOf(n *compare.Next) stepKind {
	words := n.Command.Program()
	switch {
	case len(words) == 0:
		return nothing
	case n.ByHand:
		return byHand
	case n.Gathers:
		return repairs
	case words[0] != "etcd-medic" || len(words) == 1:
		return byHand
	case slices.Contains([]string{"repair", "rebuild", "restore", "extract"}, words[1]):
		return repairs
	}
	return looks
}

// moreLine names what the screen leaves out.
func (p *page) moreLine(r *compare.Report) {
	open, all := 0, len(r.Checks)
	for _, c := range r.Checks {
		if c.Outcome != check.Holds && c.Outcome != check.Violated {
			open++
		}
	}
	p.clauses("MORE   ", fmt.Sprintf("--full: %s, %d checks, %d not made; %s",
		plural.Of(len(r.Findings), "finding", "findings"), all, open, inputsText(r)), 1)
}

// inputsText reports whether the evidence is unchanged.
func inputsText(r *compare.Report) string {
	for _, s := range r.Sources {
		if s.InUse != "" {
			return clean(s.Name) + " is IN USE: " + clean(s.InUse)
		}
	}
	if r.InputsUnchanged {
		return "the inputs did not change"
	}
	return "NOT PROVEN that the inputs did not change"
}
