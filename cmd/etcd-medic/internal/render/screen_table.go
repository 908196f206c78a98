package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// rows writes a table. Its last column takes more than one line if there is room; short has other
// texts for it where there is none.
// Columns without any value are left out.
func (p screen) rows(head []string, rows [][]string, short []string) {
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

// lastCellRoom is the width from which on the last column of the table needs no more room.
const lastCellRoom = 44

// leaveOutEqual empties columns in which all members are equal, the least telling first, until what is wrong has room
// on a line of this width. It returns what these columns say.
func leaveOutEqual(head []string, rows [][]string, width int) (said []string) {
	last, need := len(head)-1, 0
	for _, row := range rows {
		need = max(need, columns(clean(row[last])))
	}
	for _, c := range []int{1, 5, 6, 4, 3, 2} { // release, auth, keys, revision, applied, end of the log
		used := columns(paddedCells(head, columnWidths(head, rows)))
		if len(rows) < 2 || width-used >= min(need, lastCellRoom) {
			break
		}
		v := rows[0][c]
		if v == "-" || slices.ContainsFunc(rows, func(row []string) bool { return row[c] != v }) {
			continue
		}
		said = append(said, strings.ToLower(head[c])+" "+v)
		for _, row := range rows {
			row[c] = "-"
		}
	}
	return said
}

// headed writes pairs below each other, texts aligned. The first ones, which say what is wrong, which member to keep
// and what that loses, are shortened last.
func (p screen) headed(pairs [][2]string) {
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
		head := fmt.Sprintf("%-*s  ", wide, kv[0])
		switch {
		case kv[1] == "":
		case i < 3:
			p.hanging(head, kv[1], p.room.wrong)
		default:
			p.clauses(head, kv[1], p.room.sentence)
		}
	}
}
