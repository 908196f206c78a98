package render

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// hanging writes wrapped text after a head and indents the following lines by the width of the head. Text longer than
// the permitted lines ends in an ellipsis. The head may be painted, the text is cleaned.
func (p screen) hanging(head, s string, most int) {
	p.wrapped(head, strings.Repeat(" ", columns(head)), s, most)
}

// sentence writes wrapped text after a head without an indent.
func (p screen) sentence(head, s string, most int) { p.wrapped(head, "", s, most) }

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
// else the last clause: half a sentence misleads, and so do open parentheses. A text whose first clauses take less than
// half of the room is kept.
func wholeClauses(words []string, head, indent, width, most int) []string {
	line, n, sentence, clause, inside := head-1, 1, 0, 0, 0 // sentence and clause count words
	for i, w := range words {
		if line += 1 + columns(w); line > width && i > 0 {
			line, n = indent+columns(w), n+1
		}
		if n > most {
			break
		}
		if inside = max(inside+strings.Count(w, "(")-strings.Count(w, ")"), 0); inside > 0 {
			continue
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

// clauseEnd is where a text can end, so that what is left is a whole statement. wordsEnd also ends the description of
// what was observed.
var (
	clauseEnd = regexp.MustCompile(`: |; |\. | \(|, (?:which|named by) `)
	wordsEnd  = regexp.MustCompile(`: |; | \(|,? (?:that|which) |, up to |, as | key=| val=`)
	// findingIDs begin a row. Alone they state nothing.
	findingIDs = regexp.MustCompile(`^(?:[A-Z]\d\d-\d+ )*[A-Z]\d\d-\d+(?: \+\d+)?: `)
)

// endings returns the text and what is left of it as clauses are left out from its end, longest first.
func endings(s string, end *regexp.Regexp) []string {
	out := []string{s}
	ends := end.FindAllStringIndex(s, -1)
	for i := len(ends) - 1; i >= 0; i-- {
		if at := ends[i][0]; at > len(findingIDs.FindString(s)) && opened(s[:at]) == 0 {
			out = append(out, s[:at])
		}
	}
	return out
}

// opened counts the parentheses of a text that are not closed in it.
func opened(s string) int { return max(strings.Count(s, "(")-strings.Count(s, ")"), 0) }

// clauses is hanging, but leaves out clauses without a mark where too long text allows it.
func (p screen) clauses(head, s string, most int) {
	for _, e := range endings(s, clauseEnd) {
		if columns(head)+columns(e) <= p.o.width() || rowsFor(e, p.o.width()-columns(head)) <= most {
			s = e
			break
		}
	}
	p.hanging(head, s, most)
}

// inCell leaves clauses out of the last cell of a row until it fits, or takes the first shorter text, and nothing marks
// that: the row names the finding with the rest. What cannot be made short enough so is cut.
func (p screen) inCell(head, s string, short []string) {
	width, most := p.o.width()-columns(head), max(p.room.cell, 1)
	all := endings(s, clauseEnd)
	if len(short) > 0 && short[0] != "" {
		all = append(all, endings(short[0], clauseEnd)...)
	}
	for _, e := range all {
		if lines := rowsFor(e, width); lines <= most {
			p.wrapped(head, strings.Repeat(" ", columns(head)), e, lines)
			return
		}
	}
	if most == 1 {
		p.line("%s", head+brief(s, width))
		return
	}
	p.wrapped(head, strings.Repeat(" ", columns(head)), s, most)
}

// rowsFor counts the lines of wrapped text.
func rowsFor(s string, width int) int {
	n, line := 1, 0
	for _, w := range strings.Fields(s) {
		if line > 0 && line+1+columns(w) > width {
			n, line = n+1, 0
		}
		if line > 0 {
			line++
		}
		if line += columns(w); line > width { // the word takes what it needs
			n, line = n+1, width
		}
	}
	return n
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
