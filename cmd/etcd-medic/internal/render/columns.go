package render

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// tableGroup is the number of rows that are laid out together. A column keeps its width in the next group unless it
// must grow.
const tableGroup = 200

// Columns narrower than roomy lose width last; none is narrower than tight.
const (
	roomy = 24
	tight = 8
)

// columnWriter lays out rows as tables that fit a terminal. A value that is too long for its column ends with …, and
// the last columns are left out if there is no room. The last line then says so.
type columnWriter struct {
	w     io.Writer
	width int
	bold  bool

	line  []byte // the start of an incomplete line
	rows  [][][2]string
	names []string // of the columns of rows, in order of appearance
	shown []column // the last printed header
	cut   bool
	left  []string // columns left out
}

type column struct {
	name   string
	width  int
	number bool
}

// Write receives complete lines of a tableRows encoder, and the start of one.
func (c *columnWriter) Write(b []byte) (int, error) {
	c.line = append(c.line, b...)
	for {
		line, rest, ok := bytes.Cut(c.line, []byte("\n"))
		if !ok {
			break
		}
		if err := c.take(line); err != nil {
			return 0, err
		}
		c.line = rest
	}
	c.line = slices.Clone(c.line)
	return len(b), nil
}

func (c *columnWriter) take(line []byte) error {
	if len(line) > 0 && line[0] == noteMark {
		return c.note(string(line[1:]))
	}
	var row [][2]string
	var names []string
	for cell := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{cellEnd}), []byte{cellEnd}) {
		name, value, _ := bytes.Cut(cell, []byte{cellName})
		row = append(row, [2]string{string(name), string(value)})
		names = append(names, string(name))
	}
	if len(c.rows) > 0 && c.names[0] != names[0] || len(c.rows) >= tableGroup {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if len(c.rows) == 0 {
		c.names = nil
	}
	at := 0
	for _, n := range names {
		if i := slices.Index(c.names, n); i >= 0 {
			at = i + 1
			continue
		}
		c.names = slices.Insert(c.names, at, n)
		at++
	}
	c.rows = append(c.rows, row)
	return nil
}

// note writes a line between rows, wrapped.
func (c *columnWriter) note(line string) error {
	if err := c.flush(); err != nil {
		return err
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	var b strings.Builder
	at := 0
	for i, w := range strings.Fields(line) {
		n := text.StringWidthWithoutEscSequences(w)
		switch {
		case i == 0:
			b.WriteString(strings.Repeat(" ", indent))
			at = indent
		case at+1+n > c.width && at > indent+2:
			b.WriteString("\n" + strings.Repeat(" ", indent+2))
			at = indent + 2
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += n
	}
	_, err := io.WriteString(c.w, b.String()+"\n")
	return err
}

// flush writes the buffered rows.
func (c *columnWriter) flush() error {
	if len(c.rows) == 0 {
		return nil
	}
	cols := c.fit()
	var b strings.Builder
	if !slices.Equal(cols, c.shown) {
		if c.shown != nil {
			b.WriteByte('\n')
		}
		var head strings.Builder
		for i, col := range cols {
			writeCell(&head, col, col.name, i == len(cols)-1)
		}
		if h := strings.TrimRight(head.String(), " "); c.bold {
			b.WriteString("\x1b[1m" + h + "\x1b[0m\n")
		} else {
			b.WriteString(h + "\n")
		}
		c.shown = cols
	}
	for _, row := range c.rows {
		var line strings.Builder
		for i, col := range cols {
			value := valueOf(row, col.name)
			if text.StringWidthWithoutEscSequences(value) > col.width {
				value, c.cut = cutCell(value, col.width), true
			}
			writeCell(&line, col, value, i == len(cols)-1)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	c.rows = c.rows[:0]
	_, err := io.WriteString(c.w, b.String())
	return err
}

func valueOf(row [][2]string, name string) string {
	for _, cell := range row {
		if cell[0] == name {
			return cell[1]
		}
	}
	return ""
}

func writeCell(b *strings.Builder, col column, value string, last bool) {
	pad := strings.Repeat(" ", max(0, col.width-text.StringWidthWithoutEscSequences(value)))
	if col.number {
		b.WriteString(pad + value)
	} else {
		b.WriteString(value + pad)
	}
	if !last {
		b.WriteString("  ")
	}
}

// cutCell cuts text to a width, with … at its end.
func cutCell(value string, width int) string {
	n := 0
	for i, r := range value {
		if n += text.RuneWidth(r); n > width-1 {
			return value[:i] + "…"
		}
	}
	return value
}

// fit measures the columns of the buffered rows and reduces their widths until they fit.
func (c *columnWriter) fit() (cols []column) {
	var before []column // the same table, continued
	if len(c.shown) > 0 && c.shown[0].name == c.names[0] {
		before = c.shown
	}
	for _, name := range c.names {
		col := column{name: name, width: text.StringWidthWithoutEscSequences(name), number: true}
		empty := true
		for _, row := range c.rows {
			v := valueOf(row, name)
			col.width = max(col.width, text.StringWidthWithoutEscSequences(v))
			col.number = col.number && strings.Trim(v, "0123456789.-") == ""
			empty = empty && v == ""
		}
		if i := slices.IndexFunc(before, func(s column) bool { return s.name == name }); i >= 0 {
			col.width, col.number = max(col.width, before[i].width), before[i].number && col.number
		} else if empty {
			continue
		}
		cols = append(cols, col)
	}
	for len(cols) > 4 {
		tried := slices.Clone(cols)
		if shrink(tried, c.width, roomy); widthOf(tried) <= c.width {
			break
		}
		last := cols[len(cols)-1].name
		if cols = cols[:len(cols)-1]; !slices.Contains(c.left, last) {
			c.left = append(c.left, last)
		}
	}
	shrink(cols, c.width, tight)
	return cols
}

func widthOf(cols []column) (n int) {
	for _, c := range cols {
		n += c.width + 2
	}
	return n - 2
}

// shrink reduces the widest columns, down to a floor, until all fit. Keys stay twice as wide while other columns can be
// left out.
func shrink(cols []column, width, floor int) {
	for over := widthOf(cols) - width; over > 0; over-- {
		widest := -1
		for i, c := range cols {
			least := floor
			if c.name == "KEY" && floor == roomy {
				least = 2 * roomy
			}
			if c.width > least && !c.number && (widest < 0 || c.width > cols[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		cols[widest].width--
	}
}

// end writes the remaining rows, and what was not shown.
func (c *columnWriter) end() error {
	if err := c.flush(); err != nil {
		return err
	}
	var what []string
	if len(c.left) > 0 {
		slices.Reverse(c.left)
		what = append(what, "no room for "+strings.ToLower(strings.Join(c.left, ", ")))
	}
	if c.cut {
		what = append(what, "long cells are cut (…)")
	}
	if len(what) == 0 {
		return nil
	}
	return c.note("# " + strings.Join(what, "; ") + "; -w lines shows everything")
}
