package render

import (
	"bytes"
	"cmp"
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

// onScreen draws with increasing tightness until the page fits on a terminal of 24 rows.
func (p *page) onScreen(draw func(*page)) {
	for tight := 0; ; tight++ {
		var b bytes.Buffer
		q := newPage(&b, p.o)
		q.tight = tight
		draw(q)
		if err := q.flush(); err != nil {
			p.err = cmp.Or(p.err, err)
			return
		}
		if tight == tightest || rowsOf(b.Bytes(), p.o.width()) <= screenRows {
			if p.err == nil {
				_, p.err = p.w.Write(b.Bytes())
			}
			return
		}
	}
}

// How far a screen is reduced, each level in addition to those before it, but for cutCells.
const (
	// noEqual leaves out what all members have in common.
	noEqual = iota + 1
	// cutCells cuts the last cell of a table's row instead of wrapping it.
	cutCells
	// bareCommands leaves out what commands are for, and some rows and findings. The room may suffice for whole cells.
	bareCommands
	// bareAndCut does what both levels before it do.
	bareAndCut
	// shortSentences shortens sentences by a line.
	shortSentences
	// tightest also shortens those that say what is wrong and which member to keep.
	tightest
)

// cutsCells reports whether the last cell of a table's row takes one line.
func (p *page) cutsCells() bool { return p.tight == cutCells || p.tight >= bareAndCut }

// fewer returns how many items a list on the screen leaves out, at most two.
func (p *page) fewer() int {
	switch {
	case p.tight >= shortSentences:
		return 2
	case p.tight >= bareCommands:
		return 1
	}
	return 0
}

// rowsOf counts the rows that text occupies on a terminal.
func rowsOf(b []byte, width int) (n int) {
	for line := range strings.Lines(string(b)) {
		n += max(1, (columns(strings.TrimRight(line, "\n"))+width-1)/width)
	}
	return n
}

// twoLines is two lines, one on a tight screen.
func (p *page) twoLines() int { return p.atMostFrom(shortSentences, 2) }

// atMostFrom is a number of lines, one less from a level of tightness on.
func (p *page) atMostFrom(tight, lines int) int {
	if p.tight >= tight {
		return max(1, lines-1)
	}
	return lines
}

// screen writes the answer for one terminal of 80 columns and 24 rows: what is wrong, which member to keep, and what to
// type next.
func (p *page) screen(r *compare.Report) {
	p.place(r)
	p.sentence(p.verdictWord(&r.Verdict)+": ", verdictSentence(r), p.atMostFrom(tightest, 3))
	p.badSources(r.Sources)
	p.keep(r)
	p.screenTable(r)
	p.breakLines(r.Verdict.FirstBreak)
	p.doNow(r.Next)
	p.moreLine(r)
	p.line("%s", p.verdictLine(r))
}

// hanging writes wrapped text after a head and indents the following lines by the width of the head. Text longer than
// the permitted lines ends in an ellipsis. The head may be painted, the text is cleaned.
func (p *page) hanging(head, s string, most int) {
	p.wrapped(head, strings.Repeat(" ", columns(head)), s, most)
}

// sentence writes wrapped text after a head without an indent.
func (p *page) sentence(head, s string, most int) { p.wrapped(head, "", s, most) }

func (p *page) wrapped(head, indent, s string, most int) {
	words := wholeClauses(strings.Fields(clean(s)), columns(head), columns(indent), p.o.width(), most)
	line, n, fresh := head, 1, true // fresh: nothing follows the head or indent yet
	for i, w := range words {
		if !fresh && n < most && columns(line)+1+columns(w) > p.o.width() {
			p.line("%s", line)
			line, n, fresh = indent, n+1, true
		}
		if !fresh {
			w = " " + w
		}
		room := p.o.width() - columns(line)
		if i < len(words)-1 && n == most {
			room -= len(" …") - 1 // for the mark that more was said
		}
		if columns(w) > room && n == most {
			p.line("%s", cutShort(line, w, p.o.width()))
			return
		}
		line, fresh = line+w, false
	}
	p.line("%s", strings.TrimRight(line, " "))
}

// cutShort ends a line that a word does not fit on: before the word, or inside of a long one.
func cutShort(line, word string, width int) string {
	if columns(word) > width/3 {
		return fit(line+word, width-1) + "…"
	}
	return fit(line, width-2) + " …"
}

// wholeClauses leaves out the end of a text that needs more lines than permitted, from the last sentence that fits, or
// else the last clause: half a sentence misleads. A text whose first clauses take less than half of the room is kept.
func wholeClauses(words []string, head, indent, width, most int) []string {
	line, n, sentence, clause := head-1, 1, 0, 0 // the last two count words
	for i, w := range words {
		if line += 1 + columns(w); line > width && i > 0 {
			line, n = indent+columns(w), n+1
		}
		if n > most {
			break
		}
		if n == most && line+len(" …")-2 > width || 2*((n-1)*width+line) < most*width {
			continue
		}
		switch w[len(w)-1] {
		case '.', ';':
			sentence = i + 1
		case ':':
			clause = i + 1
		}
	}
	last := cmp.Or(sentence, clause)
	if n <= most || last == 0 {
		return words
	}
	return append(slices.Clone(words[:last-1]), strings.TrimRight(words[last-1], ".;:"), "…")
}

// columns is the width of text on a terminal.
func columns(s string) int { return text.StringWidthWithoutEscSequences(s) }

// fit cuts text to a number of columns. Painted text keeps its colours.
func fit(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	return strings.TrimRight(text.Trim(s, max(width, 0)), " ")
}

// brief cuts text to a number of columns and shows that it did.
func brief(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	return fit(s, width-1) + "…"
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
		p.hanging("KEEP   ", "undecided: "+b.Why, p.atMostFrom(tightest, 3))
		return
	case 1:
		p.hanging("KEEP   ", b.Members[0]+": "+whyOf(b, b.Members[0]), p.atMostFrom(tightest, 2))
	default:
		p.hanging("KEEP   ", strings.Join(b.Members, " or ")+", equally good: "+eachOf(b, b.Members[0]),
			p.atMostFrom(tightest, 2))
	}
	p.hanging("LOSES  ", losesText(&b.Lost), p.twoLines())
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
	switch none := l.CommittedEntries == 0 && l.Keys == 0; {
	case none && len(l.Unproven) == 0:
		return l.String()
	case none:
		return "nothing that is known" + l.Condition() + ". Not proven: " + strings.Join(l.Unproven, "; ")
	}
	return l.String() + "; --full lists them"
}

// rows writes a table. Its last column is cut to the width of the screen, or uses a second line if there is room.
// Columns without any value are left out.
func (p *page) rows(head []string, rows [][]string) {
	wide := columnWidths(head, rows)
	p.line("%s", p.paint(strings.TrimRight(paddedCells(head, wide)+head[len(head)-1], " "), text.Bold))
	for _, row := range rows {
		cells, last := paddedCells(row, wide), clean(row[len(row)-1])
		if wide[len(row)-1] == 0 {
			last = ""
		}
		if !p.cutsCells() && p.o.width()-columns(cells) >= wrapFrom {
			p.wrapped(cells, strings.Repeat(" ", columns(cells)), last, 2)
			continue
		}
		p.line("%s", strings.TrimRight(cells+brief(last, p.o.width()-columns(cells)), " "))
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
		p.hanging(head+" ", next[0].Text, p.twoLines())
	} else {
		p.line("%s", head)
	}
	shown := 0
	for i := range next {
		if n := &next[i]; kindOf(n) == kind && !n.Command.IsZero() && shown < screenCommands {
			shown++
			if p.tight < bareCommands {
				p.hanging("  ", n.Text, p.twoLines())
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
	p.hanging("MORE   ", fmt.Sprintf("--full: %s, %d checks, %d not made; %s",
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
