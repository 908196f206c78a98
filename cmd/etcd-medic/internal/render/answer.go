package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Mood is the quality of an answer, shown as a color.
type Mood int

// The moods.
const (
	Doubtful Mood = iota
	Good
	Bad
)

// Answer is the result of a command on one screen. Its sheet, or the machine formats, have the rest.
type Answer struct {
	// Word is the answer in one or two words, Says the sentence after it.
	Word string
	Mood Mood
	Says string
	// Pairs are heads in capitals with their text, most important first; those without text are left out.
	Pairs [][2]string
	// Head and Rows are one table; its last column is cut to the screen.
	Head []string
	Rows [][]string
	// Title is the heading of the commands; the first three are shown.
	Title    string
	Commands []Command
	// More says where the rest is, Last is the text after the word on the last line.
	More, Last string
}

// Reply writes doc in the machine formats; as text, one screen, or with Full the sheet.
func Reply(w io.Writer, f Format, doc any, a *Answer, sheet Sheet, o Options) error {
	return document(w, f, doc, o, func(p *page) {
		if o.Full {
			p.sheet(sheet)
			p.line("")
			p.lastLine(a)
			return
		}
		p.onScreen(func(p *page) { p.answer(a) })
	})
}

func (p *page) sheet(s Sheet) {
	for _, part := range s.Sections {
		p.part(part)
	}
}

// answerRows is the maximum number of rows of the table, fewer on smaller screens.
const answerRows = 8

func (p *page) answer(a *Answer) {
	p.sentence(p.mood(a)+": ", a.Says, p.atMostFrom(tightest, 3))
	p.headed(firstPairs(a.Pairs, []int{7, 6, 4}[p.fewer()]))
	if len(a.Rows) > 0 {
		p.line("")
		shown := min(len(a.Rows), answerRows-2*p.fewer())
		p.rows(a.Head, a.Rows[:shown])
		if n := len(a.Rows) - shown; n > 0 {
			p.line("… and %s, see --full", plural.Of(n, "more row", "more rows"))
		}
	}
	if len(a.Commands) > 0 {
		p.line("")
		p.line("%s", p.paint(a.Title, text.Bold))
	}
	for _, c := range a.Commands[:min(len(a.Commands), screenCommands)] {
		if c.Run.IsZero() {
			p.hanging("    ", c.Prefix, 1)
			continue
		}
		p.command("    "+c.Prefix, c.Run)
	}
	if n := len(a.Commands) - screenCommands; n > 0 {
		p.line("    … and %d more, see --full", n)
	}
	if a.More != "" {
		p.hanging("MORE   ", a.More, 1)
	}
	p.lastLine(a)
}

// firstPairs returns at most so many pairs with a text.
func firstPairs(pairs [][2]string, most int) (out [][2]string) {
	for _, kv := range pairs {
		if kv[1] != "" && len(out) < most {
			out = append(out, kv)
		}
	}
	return out
}

// headed writes pairs below each other, texts aligned. The first two, which say what is wrong and whom to keep, are
// shortened last.
func (p *page) headed(pairs [][2]string) {
	wide := 0
	for _, kv := range pairs {
		if kv[1] != "" {
			wide = max(wide, len(kv[0]))
		}
	}
	if wide > 0 {
		p.line("")
	}
	for i, kv := range pairs {
		lines := p.twoLines()
		if i < 2 {
			lines = p.atMostFrom(tightest, 2)
		}
		if kv[1] != "" {
			p.hanging(fmt.Sprintf("%-*s  ", wide, kv[0]), kv[1], lines)
		}
	}
}

// mood returns the word of an answer in its color.
func (p *page) mood(a *Answer) string {
	color := map[Mood]text.Color{Doubtful: text.FgYellow, Good: text.FgGreen, Bad: text.FgRed}[a.Mood]
	return p.paint(a.Word, color, text.Bold)
}

func (p *page) lastLine(a *Answer) {
	if a.Last == "" {
		p.line("%s", p.mood(a))
		return
	}
	p.line("%s: %s", p.mood(a), brief(clean(strings.TrimSpace(a.Last)), p.o.width()-columns(a.Word)-2))
}
