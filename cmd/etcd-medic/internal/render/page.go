package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/shell"
)

// page writes text for people, plain enough to paste into an issue. It keeps the first write error and returns it at
// the end. Its methods are what every text needs. What is said in one place only has its own small type around a
// page: a xxxPage is the whole text of a command, a xxxSection one part of it, and a xxxScreen is a text that fits on a
// terminal.
type page struct {
	w   *bufio.Writer
	o   Options
	err error
	// places are the arguments for the sources, by label.
	places map[string]string
	// given returns the original arguments of all sources for a command, labels are the sources in their order.
	given  func(shell.Command) []string
	labels []string
	colors painter
}

func newPage(w io.Writer, o Options) *page {
	return &page{w: bufio.NewWriter(w), o: o, colors: newPainter()}
}

func (p *page) flush() error {
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = p.w.WriteString(p.colors.line(fmt.Sprintf(format, args...)) + "\n")
	}
}

// section starts a new part of the page.
func (p *page) section(title string) {
	p.line("")
	p.line("%s", p.paint(strings.ToUpper(title), text.Bold))
}

// text writes wrapped text after the prefix; following lines are indented to its width.
func (p *page) text(prefix, s string) {
	s = clean(s)
	if s == "" {
		return
	}
	indent := strings.Repeat(" ", text.StringWidthWithoutEscSequences(prefix))
	width := max(p.o.width()-len(indent), 40)
	for i, l := range strings.Split(text.WrapSoft(s, width), "\n") {
		if i > 0 {
			prefix = indent
		}
		p.line("%s", strings.TrimRight(prefix+l, " "))
	}
}

// command writes a command line with the paths of the sources. It is never wrapped, since it is meant to be copied.
func (p *page) command(prefix string, cmd shell.Command) {
	if cmd.IsZero() {
		return
	}
	if p.given != nil {
		cmd = cmd.AtOnce(p.labels, p.given(cmd))
	}
	p.line("%s%s", clean(prefix), cmd.At(p.places))
}

// setSources records the paths of the sources, which commands name.
func (p *page) setSources(r *compare.Report) {
	p.places, p.given, p.labels = map[string]string{}, r.GivenTo, nil
	for _, s := range r.Sources {
		p.places[s.Name] = s.Where
		p.labels = append(p.labels, s.Name)
	}
}

// table draws columns without boxes, indented.
func (p *page) table(indent string, head []string, rows [][]string) {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.Options{}
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.AppendHeader(tableRow(head))
	for _, r := range rows {
		t.AppendRow(tableRow(r))
	}
	for l := range strings.Lines(t.Render()) {
		p.line("%s%s", indent, strings.TrimRight(l, " \n"))
	}
}

func tableRow(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = clean(c)
	}
	return r
}

// pairs writes "name  value" lines with aligned values; pairs without a value are left out.
func (p *page) pairs(indent string, pairs ...[2]string) {
	wide := 0
	for _, kv := range pairs {
		if kv[1] != "" {
			wide = max(wide, len(kv[0]))
		}
	}
	for _, kv := range pairs {
		if kv[1] != "" {
			p.text(fmt.Sprintf("%s%-*s  ", indent, wide, kv[0]), kv[1])
		}
	}
}

func (p *page) paint(s string, c ...text.Color) string {
	if !p.o.Color {
		return s
	}
	codes := strings.TrimSuffix(strings.TrimPrefix(text.Colors(c).EscapeSeq(), "\x1b["), "m")
	return p.colors.paint(clean(s), codes)
}

func (p *page) severity(s check.Severity) string {
	switch s {
	case check.Critical, check.Error:
		return p.paint(string(s), text.FgRed, text.Bold)
	case check.Warning:
		return p.paint(string(s), text.FgYellow)
	}
	return string(s)
}

// clean makes text from a file safe before it is measured and wrapped: a terminal must not interpret evidence.
func clean(s string) string { return Safe(s) }
