package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
)

// The signs of a lane, the least important first: if several fall into one column, the last one is shown.
const (
	laneNone     = ' '
	lanePurged   = '/'
	laneSkipped  = '~'
	laneLog      = '-'
	laneApplied  = '='
	laneSnapshot = 's'
	laneStart    = '>'
	laneLacks    = 'x'
	laneJump     = '^'
	laneFirst    = 'X'
	laneDamage   = '#'
)

var laneOrder = []byte{laneNone, lanePurged, laneSkipped, laneLog, laneApplied, laneSnapshot, laneStart, laneLacks,
	laneJump, laneFirst, laneDamage}

// laneNames explains the signs in the order of the legend.
var laneNames = []struct {
	sign byte
	name string
}{{laneApplied, "applied"}, {laneLog, "in the log only"}, {lanePurged, "not in the log"},
	{laneSkipped, "skipped by snapshot"}, {laneStart, "start"}, {laneSnapshot, "snapshot"},
	{laneJump, "auth revision jumps"}, {laneFirst, "first missing effect"}, {laneLacks, "missing effects"},
	{laneDamage, "damaged or missing"}}

// Lanes draws the timeline with characters: an axis of raft indexes, terms, marks of the cluster, and a lane for each
// member.
func Lanes(t *timeline.Timeline, firstBreak uint64, width int) []string {
	if t == nil || t.Last < t.First {
		return nil
	}
	label := 5
	for i := range t.Lanes {
		label = max(label, min(len([]rune(clean(t.Lanes[i].Member))), 24))
	}
	d := &laneDrawing{t: t, cols: max(width-label-3, 20)}
	d.cols = int(min(uint64(d.cols), t.Last-t.First+1))
	line := func(name string, cells []byte) string {
		return strings.TrimRight(fmt.Sprintf("%-*s  %s", label, shorten(clean(name), 24), cells), " ")
	}
	out := []string{line("entry", d.axis()), line("term", d.terms()), line("log", d.cluster())}
	used := map[byte]bool{}
	for i := range t.Lanes {
		cells := d.lane(i)
		for _, c := range cells {
			used[c] = true
		}
		out = append(out, line(t.Lanes[i].Member, cells))
	}
	if firstBreak >= t.First && firstBreak <= t.Last {
		text := fmt.Sprintf("! first break %d", firstBreak)
		at := d.col(firstBreak)
		if at+len(text) > d.cols && at+1 >= len(text) {
			text = fmt.Sprintf("first break %d !", firstBreak)
			at -= len(text) - 1
		}
		out = append(out, line("", []byte(strings.Repeat(" ", at)+text)))
	}
	return append(out, d.legend(used, width)...)
}

// lanesSection writes the drawing of the timeline.
type lanesSection struct{ *page }

// write writes the drawing with a heading.
func (p lanesSection) write(r *compare.Report) {
	var at uint64
	if b := r.Verdict.FirstBreak; b != nil {
		at = b.Index
	}
	lines := Lanes(p.o.Lanes, at, p.o.width()-2)
	if len(lines) == 0 {
		return
	}
	p.section("lanes")
	for _, l := range append(lines, laneObjects(r.Timeline)...) {
		p.line("%s", strings.TrimRight("  "+l, " "))
	}
}

// laneObjects returns the names of the Kubernetes objects at the marks about a key.
func laneObjects(moments []timeline.Moment) (out []string) {
	for i := range moments {
		m := &moments[i]
		var names []string
		for j := range m.Objects {
			names = append(names, clean(m.Objects[j].String()))
		}
		if m.Kind == "divergence" && len(names) > 0 {
			out = append(out, fmt.Sprintf("%c %d/%d on %s: %s", laneFirst, m.Term, m.Index,
				clean(strings.Join(m.Members, ", ")), strings.Join(names, "; ")))
		}
	}
	return out
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// laneDrawing maps indexes to columns.
type laneDrawing struct {
	t    *timeline.Timeline
	cols int
	// marked are the kinds of marks on the cluster's row.
	marked []string
}

func (d *laneDrawing) col(index uint64) int {
	index = min(max(index, d.t.First), d.t.Last)
	return int(float64(index-d.t.First) / float64(d.t.Last-d.t.First+1) * float64(d.cols))
}

func (d *laneDrawing) blank() []byte { return slices.Repeat([]byte{laneNone}, d.cols) }

// axis writes round indexes at their columns.
func (d *laneDrawing) axis() []byte {
	row, end := d.blank(), -1
	n := max(1, d.cols/16)
	for i := 0; i <= n; i++ {
		index := d.t.First + (d.t.Last-d.t.First)*uint64(i)/uint64(n)
		s, at := strconv.FormatUint(index, 10), d.col(index)
		if at+len(s) > d.cols {
			at = d.cols - len(s)
		}
		if at > end {
			copy(row[max(at, 0):], s)
			end = at + len(s)
		}
	}
	return row
}

func (d *laneDrawing) terms() []byte {
	row := d.blank()
	for i, t := range d.t.Terms {
		at, end := d.col(t.From), d.cols
		if i+1 < len(d.t.Terms) {
			end = d.col(d.t.Terms[i+1].From)
		}
		s := "|" + strconv.FormatUint(t.Term, 10)
		if t.Leader != "" && t.Elected {
			s += " " + clean(t.Leader)
		}
		for k := 0; k < len(s) && at+k < max(end, at+1) && at+k < d.cols; k++ {
			row[at+k] = s[k]
			if s[k] >= 0x80 {
				row[at+k] = '?'
			}
		}
	}
	return row
}

// clusterSigns are the marks about all members.
var clusterSigns = []struct {
	kind    string
	sign    byte
	name    string
	refused bool
}{{"version", 'v', "cluster version", false}, {"compaction", 'k', "compaction", false},
	{"auth", 'a', "auth on or off", false}, {"alarm", '!', "alarm", false},
	{"conf-change", 'c', "conf change", false}, {"conf-change", 'r', "refused conf change", true}}

func (d *laneDrawing) cluster() []byte {
	row := slices.Repeat([]byte{'.'}, d.cols)
	for _, g := range d.t.Gaps {
		d.fill(row, g.From, g.To, laneNone)
	}
	for _, k := range clusterSigns {
		for i := range d.t.Marks {
			m := &d.t.Marks[i]
			if m.Kind == k.kind && m.Refused == k.refused && m.Index >= d.t.First && m.Index <= d.t.Last {
				row[d.col(m.Index)] = k.sign
				d.marked = append(d.marked, string(k.sign)+" "+k.name)
			}
		}
	}
	return row
}

func (d *laneDrawing) fill(row []byte, from, to uint64, sign byte) {
	if to < d.t.First || from > d.t.Last || from > to {
		return
	}
	for c := d.col(from); c <= d.col(to); c++ {
		row[c] = sign
	}
}

// lane draws one member.
func (d *laneDrawing) lane(n int) []byte {
	l := &d.t.Lanes[n]
	row := d.blank()
	for _, s := range l.Purged {
		d.fill(row, s.From, s.To, lanePurged)
	}
	if l.LogTo > 0 {
		d.fill(row, l.LogFrom, l.LogTo, laneLog)
		d.fill(row, l.LogFrom, min(l.Applied, l.LogTo), laneApplied)
	}
	for _, s := range l.Skipped {
		d.fill(row, s.From, s.To, laneSkipped)
	}
	put := func(index uint64, sign byte) {
		if index < d.t.First || index > d.t.Last {
			return
		}
		if c := d.col(index); slices.Index(laneOrder, row[c]) < slices.Index(laneOrder, sign) {
			row[c] = sign
		}
	}
	for i := range d.t.Marks {
		m := &d.t.Marks[i]
		if !slices.Contains(m.Members, l.Member) {
			continue
		}
		if sign := map[string]byte{"start": laneStart, "snapshot": laneSnapshot, "auth-revision-jump": laneJump,
			"divergence": laneFirst}[m.Kind]; sign != 0 {
			put(m.Index, sign)
		}
	}
	for i := range d.t.Events {
		if e := &d.t.Events[i]; slices.Contains(e.Lacking, n) {
			put(e.Index, laneLacks)
		}
	}
	for _, s := range slices.Concat(l.Damaged, l.Hidden) {
		d.fill(row, s.From, s.To, laneDamage)
	}
	return row
}

// legend explains the signs that were used, in lines of the width.
func (d *laneDrawing) legend(used map[byte]bool, width int) []string {
	var names []string
	for _, n := range laneNames {
		if used[n.sign] {
			names = append(names, string(n.sign)+" "+n.name)
		}
	}
	out := []string{""}
	for _, n := range append(names, slices.Compact(d.marked)...) {
		if last := out[len(out)-1]; last != "" && len(last)+3+len(n) <= width {
			out[len(out)-1] += "   " + n
			continue
		}
		out = append(out, n)
	}
	return out
}
