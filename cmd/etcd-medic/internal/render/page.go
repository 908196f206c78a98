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

// page writes text for people: plain enough to be pasted into an issue. The first write error is kept and returned at
// the end.
type page struct {
	w   *bufio.Writer
	o   Options
	err error
	// tight is how far a screen has to be reduced to fit; see onScreen.
	tight int
	// places are the arguments that name the sources again, by label.
	places map[string]string
	// given are the arguments that named all sources, labels the sources in their order.
	given, labels []string
	// upcoming are the steps that the page ends with.
	upcoming []compare.Next
	// summary is the sentence that the page begins with.
	summary string
	colors  painter
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

// text writes running text, wrapped, every line behind the prefix; following lines are indented as deep.
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

// command writes a command line. It is never wrapped: it is meant to be copied. Sources are named by where they lie.
func (p *page) command(prefix string, cmd shell.Command) {
	if !cmd.IsZero() {
		p.line("%s%s", clean(prefix), cmd.AtOnce(p.labels, p.given).At(p.places))
	}
}

// place remembers where the sources lie.
func (p *page) place(r *compare.Report) {
	sources := r.Sources
	p.places, p.given, p.labels = map[string]string{}, r.Given, nil
	p.upcoming, p.summary = r.Next, r.Verdict.Summary
	for _, s := range sources {
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

// clean makes text safe that may come from a file, before it is measured and wrapped: a terminal must not obey
// evidence.
func clean(s string) string { return Safe(s) }
