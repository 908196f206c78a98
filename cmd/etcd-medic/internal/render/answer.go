package render

import (
	"io"
	"slices"
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
	// Head and Rows are one table; its last column is cut to the screen. Spare is a column that gives way to it, 0 for
	// none.
	Head  []string
	Rows  [][]string
	Spare int
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
			sheet.write(p)
			p.line("")
			a.writeLast(p)
			return
		}
		p.onScreen(func(s screen) { answerScreen{s, a}.write() })
	})
}

// answerScreen is the screen of an answer.
type answerScreen struct {
	screen
	a *Answer
}

// answerRows is the maximum number of rows of the table, fewer on smaller screens.
const answerRows = 8

func (p answerScreen) write() {
	a := p.a
	p.sentence(a.painted(p.page)+": ", a.Says, p.room.wrong)
	p.headed(firstPairs(a.Pairs, 7-p.room.pairs))
	if len(a.Rows) > 0 {
		p.line("")
		shown := min(len(a.Rows), answerRows-2*p.room.fewer)
		p.rows(a.Head, a.withoutSpare(shown, p.room.equal), nil)
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
	more := a.More
	if n := len(a.Commands) - screenCommands; n > 0 {
		more += "; " + plural.Of(n, "more command", "more commands")
	}
	if more != "" {
		p.clauses("MORE   ", more, 1)
	}
	a.writeLast(p.page)
}

// withoutSpare returns the first rows, without the column that is left out of a narrow screen.
func (a *Answer) withoutSpare(n int, roomy bool) [][]string {
	if roomy || a.Spare == 0 {
		return a.Rows[:n]
	}
	out := make([][]string, n)
	for i, row := range a.Rows[:n] {
		out[i] = slices.Clone(row)
		out[i][a.Spare] = "-"
	}
	return out
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

// painted returns the word of an answer in its color.
func (a *Answer) painted(p *page) string {
	color := map[Mood]text.Color{Doubtful: text.FgYellow, Good: text.FgGreen, Bad: text.FgRed}[a.Mood]
	return p.paint(a.Word, color, text.Bold)
}

func (a *Answer) writeLast(p *page) {
	if a.Last == "" {
		p.line("%s", a.painted(p))
		return
	}
	p.line("%s: %s", a.painted(p), brief(clean(strings.TrimSpace(a.Last)), p.o.width()-columns(a.Word)-2))
}
