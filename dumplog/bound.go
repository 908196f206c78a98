package dumplog

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// MaxMarks bounds what a Summary lists of a log: each run of entries of one term costs one mark, each snapshot record
// four. Logs of servers have some thousands. A Summary with this many takes some 200 MB. Damage costs nothing: a log is
// never left out for the number of its damaged places.
const MaxMarks = 1_000_000

// maxDamage bounds the damaged places that a Summary lists one by one. All segments have equal parts of it. The rest of
// the places of a segment is one DamageError that reaches from the first to the last of them.
const (
	maxDamage   = 200_000
	leastDamage = 20 // of a segment
)

const (
	runCost  = 1
	markCost = 4
	// memberCost is how many members of a snapshot record cost one mark more.
	memberCost = 16
	// maxMembers bounds the members of one ConfState.
	maxMembers = 1 << 20
)

// TooManyMarksError says that a log shows more than can be listed: not one that a server wrote.
type TooManyMarksError struct{ Max int }

// Error says what there is too much of.
func (e *TooManyMarksError) Error() string {
	return fmt.Sprintf("changes of term, replaced entries and snapshot records are more than fit into a summary (%d "+
		"marks), which no server writes: what follows from them is not examined", e.Max)
}

// Bound sets how many marks a Summary of the log may have, instead of MaxMarks: for who reads many logs at once.
func (l *Log) Bound(marks int) { l.maxMarks = marks }

// GoWithoutMarks makes Scan return a Summary without marks instead of a *TooManyMarksError; see Summary.Unmarked.
func (l *Log) GoWithoutMarks() { l.lenient = true }

// marks counts what all segments of one scan have listed.
type marks struct {
	used    atomic.Int64
	max     int
	lenient bool
	// damage is how many damaged places of one segment are listed.
	damage int
}

func (l *Log) newMarks() *marks {
	m := &marks{max: l.maxMarks, lenient: l.lenient, damage: max(maxDamage/len(l.segs), leastDamage)}
	if m.max == 0 {
		m.max = MaxMarks
	}
	return m
}

// take counts what one segment lists. Whether all segments list too much does not depend on their order.
func (m *marks) take(n int64) error {
	if n > 0 && m.used.Add(n) > int64(m.max) && !m.lenient {
		return &TooManyMarksError{m.max}
	}
	return nil
}

// tooMany reports whether the segments that were read so far list too much.
func (m *marks) tooMany() bool { return m.used.Load() > int64(m.max) }

// withoutMarks drops all events but damage.
func (d *digest) withoutMarks() {
	d.events = slices.DeleteFunc(d.events, func(v event) bool { return v.kind != eventDamage })
}

// unmarked completes the summary of a log with too many marks. What is known of its entries is what each segment says
// of itself.
func (o *order) unmarked(limit int) {
	s := o.sum
	s.Unmarked = true
	for i := range s.Segments {
		g := &s.Segments[i]
		if g.FirstEntry > 0 && (s.FirstIndex == 0 || g.FirstEntry < s.FirstIndex) {
			s.FirstIndex = g.FirstEntry
		}
		if g.LastEntry > 0 {
			s.LastIndex = g.LastEntry
		}
	}
	s.LastTerm = o.prevTerm
	o.report(&DamageError{Pos: Pos{Segment: s.Segments[0].Name}, Kind: DamageMarks, Err: &TooManyMarksError{limit}})
	o.waiting = nil
}
