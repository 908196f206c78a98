package dumplog

import (
	"slices"
	"testing"
)

// TestNextEntry: entries before an event, and other events, do not count.
func TestNextEntry(t *testing.T) {
	run := func(first uint64) event { return event{kind: eventRun, first: first, last: first + 3} }
	events := []event{run(2), {kind: eventSnapshot, snap: &SnapshotRecord{Index: 5}}, {kind: eventDamage}, run(6),
		run(9)}
	for from, want := range []uint64{2, 6, 6, 6, 9, 0} {
		if got := nextEntry(events[from:]); got != want {
			t.Errorf("from event %d on: %d, want %d", from, got, want)
		}
	}
}

// TestReceived: what the member held beyond its commit index ends with a snapshot that its log cannot contain. Damage
// and a log that holds the snapshot's entry leave the log as it is.
func TestReceived(t *testing.T) {
	conf := &ConfState{}
	for name, c := range map[string]struct {
		commit, within uint64
		snap           SnapshotRecord
		damage         []*DamageError
		next, last     uint64
	}{
		"beyond the log":              {35, 35, SnapshotRecord{Index: 41, Term: 4, ConfState: conf}, nil, 0, 35},
		"within the tail":             {35, 35, SnapshotRecord{Index: 38, Term: 4, ConfState: conf}, nil, 0, 35},
		"one of 3.3":                  {41, 35, SnapshotRecord{Index: 41, Term: 4}, nil, 0, 35},
		"of a later release":          {41, 35, SnapshotRecord{Index: 41, Term: 4, ConfState: conf}, nil, 0, 39},
		"its own":                     {35, 35, SnapshotRecord{Index: 35, Term: 2, ConfState: conf}, nil, 0, 39},
		"its own, of another term":    {35, 35, SnapshotRecord{Index: 34, Term: 3, ConfState: conf}, nil, 0, 39},
		"of the entry that it holds":  {35, 35, SnapshotRecord{Index: 38, Term: 2, ConfState: conf}, nil, 0, 39},
		"no HardState":                {0, 0, SnapshotRecord{Index: 41, Term: 4, ConfState: conf}, nil, 0, 39},
		"all was committed":           {39, 39, SnapshotRecord{Index: 41, Term: 4, ConfState: conf}, nil, 0, 39},
		"the log continues behind it": {35, 35, SnapshotRecord{Index: 41, Term: 4, ConfState: conf}, nil, 42, 35},
		"the log continues before it": {41, 35, SnapshotRecord{Index: 41, Term: 4}, nil, 41, 39},
		"after damage":                {35, 35, SnapshotRecord{Index: 41, Term: 4, ConfState: conf}, []*DamageError{{}}, 0, 39},
	} {
		o := &order{last: 39, sum: &Summary{Terms: []TermRange{{Term: 2, First: 30, Last: 39}}, Damage: c.damage}}
		o.received(&event{kind: eventSnapshot, snap: &c.snap, commit: c.commit, within: c.within}, c.next)
		if want := (TermRange{Term: 2, First: 30, Last: c.last}); o.last != c.last ||
			!slices.Equal(o.sum.Terms, []TermRange{want}) {
			t.Errorf("%s: the log ends with %d, %+v, want %d", name, o.last, o.sum.Terms, c.last)
		}
		if n := len(o.sum.Overwrites); n > 0 != (c.last < 39) {
			t.Errorf("%s: %d overwrites", name, n)
		}
	}
}
