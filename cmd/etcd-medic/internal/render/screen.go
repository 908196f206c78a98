package render

import (
	"bytes"
	"cmp"
	"strings"
)

// room is what the parts of a screen may take.
type room struct {
	// equal shows what all members have in common.
	equal bool
	// texts is for how many commands the screen says what they are for.
	texts int
	// wrong are the lines of a sentence that says what is wrong or which member to keep, sentence those of others, cell
	// those of the last cell of a table's row.
	wrong, sentence, cell int
	// fewer is how many items a list leaves out, at most two; pairs is how many lines with a head in capitals are left
	// out, the last first.
	fewer, pairs int
}

// rooms are tried in order until a page fits on the screen. What is wrong is shortened last, to one line only where
// long commands leave no more.
var rooms = []room{
	{equal: true, texts: 3, wrong: 5, sentence: 4, cell: 4},
	{texts: 3, wrong: 5, sentence: 4, cell: 4},
	{texts: 3, wrong: 5, sentence: 3, cell: 3},
	{texts: 1, wrong: 5, sentence: 4, cell: 4},
	{texts: 1, wrong: 5, sentence: 3, cell: 3},
	{texts: 1, wrong: 4, sentence: 2, cell: 3},
	{texts: 1, wrong: 4, sentence: 2, cell: 2},
	{texts: 0, wrong: 4, sentence: 2, cell: 3, pairs: 1},
	{texts: 0, wrong: 4, sentence: 2, cell: 2, pairs: 1},
	{texts: 1, wrong: 4, sentence: 2, cell: 2, fewer: 1, pairs: 1},
	{texts: 0, wrong: 3, sentence: 2, cell: 1, pairs: 1},
	{texts: 0, wrong: 3, sentence: 2, cell: 2, fewer: 1, pairs: 1},
	{texts: 0, wrong: 3, sentence: 2, cell: 1, fewer: 1, pairs: 2},
	{texts: 0, wrong: 3, sentence: 2, cell: 1, fewer: 1, pairs: 3},
	{texts: 0, wrong: 3, sentence: 1, cell: 1, fewer: 2, pairs: 3},
	{texts: 0, wrong: 2, sentence: 1, cell: 1, fewer: 2, pairs: 3},
	{texts: 0, wrong: 1, sentence: 1, cell: 1, fewer: 2, pairs: 3},
}

// screen is a page that has to fit on a terminal.
type screen struct {
	*page
	room room
}

// onScreen draws with less and less room until the page fits on a terminal of 24 rows.
func (p *page) onScreen(draw func(screen)) {
	for i, r := range rooms {
		var b bytes.Buffer
		q := newPage(&b, p.o)
		draw(screen{q, r})
		if err := q.flush(); err != nil {
			p.err = cmp.Or(p.err, err)
			return
		}
		if i == len(rooms)-1 || rowsOf(b.Bytes(), p.o.width()) <= screenRows {
			if p.err == nil {
				_, p.err = p.w.Write(b.Bytes())
			}
			return
		}
	}
}

// rowsOf counts the rows that text occupies on a terminal.
func rowsOf(b []byte, width int) (n int) {
	for line := range strings.Lines(string(b)) {
		n += max(1, (columns(strings.TrimRight(line, "\n"))+width-1)/width)
	}
	return n
}

// screenRows is the height of the smallest terminal, less one row for the prompt.
const screenRows = 23
