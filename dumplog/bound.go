package dumplog

import (
	"fmt"
	"sync/atomic"
)

// MaxMarks bounds what a Summary lists of a log: each run of entries of one term costs one mark, each snapshot record
// four. Logs of servers have some thousands. A Summary with this many takes some 200 MB. Damage costs nothing: a log is
// never left out for the number of its damaged places.
const MaxMarks = 1_000_000

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
		"marks), which no server writes: the log is not examined", e.Max)
}

// Bound sets how many marks a Summary of the log may have, instead of MaxMarks: for who reads many logs at once.
func (l *Log) Bound(marks int) { l.maxMarks = marks }

// marks counts what all segments of one scan have listed.
type marks struct {
	used atomic.Int64
	max  int
}

func (l *Log) newMarks() *marks {
	m := &marks{max: l.maxMarks}
	if m.max == 0 {
		m.max = MaxMarks
	}
	return m
}

// take counts what one segment lists. Whether all segments list too much does not depend on their order.
func (m *marks) take(n int64) error {
	if n > 0 && m.used.Add(n) > int64(m.max) {
		return &TooManyMarksError{m.max}
	}
	return nil
}
