package dumplog

import (
	"slices"
	"testing"
)

// TestAheadWatch: a HardState commits what the log holds before it. What was received as a snapshot, lost, or cannot be
// known at the start of a segment is no contradiction.
func TestAheadWatch(t *testing.T) {
	type step func(w *aheadWatch)
	entry := func(i uint64) step { return func(w *aheadWatch) { w.entry(0, i) } }
	state := func(c uint64) step {
		return func(w *aheadWatch) { w.state(HardState{Commit: c}, Pos{Offset: int64(c)}) }
	}
	snap := func(i uint64) step { return func(w *aheadWatch) { w.snapshot(0, i, true) } }
	old := func(i uint64) step { return func(w *aheadWatch) { w.snapshot(0, i, false) } }
	lost := func(w *aheadWatch) { w.lost() }
	at := func(c, last uint64) CommitAhead { return CommitAhead{Pos{Offset: int64(c)}, c, last} }
	for name, c := range map[string]struct {
		steps []step
		want  []CommitAhead
	}{
		"in order":              {[]step{entry(1), state(1), entry(2), state(1), state(2), entry(3)}, nil},
		"one entry is gone":     {[]step{entry(1), state(1), entry(2), state(3), entry(3), state(4), entry(4)}, []CommitAhead{at(3, 2), at(4, 3)}},
		"several are gone":      {[]step{entry(5), state(9), state(10), entry(6)}, []CommitAhead{at(9, 5)}},
		"and then it ends":      {[]step{entry(5), state(6)}, nil},
		"it is in order again":  {[]step{entry(5), state(6), state(5), entry(6)}, nil},
		"a received snapshot":   {[]step{entry(5), snap(20), state(20), entry(21), state(21), entry(22)}, nil},
		"one in 3.3":            {[]step{entry(5), state(20), old(20), state(20), entry(21)}, nil},
		"a snapshot of its own": {[]step{entry(5), snap(4), state(6), entry(6)}, []CommitAhead{at(6, 5)}},
		"records were lost":     {[]step{entry(5), lost, state(7), entry(6)}, nil},
		"lost after the state":  {[]step{entry(5), state(7), lost, entry(6)}, nil},
		"a segment begins":      {[]step{state(9), snap(5), state(9), entry(6), state(6)}, nil},
		"the log was cut":       {[]step{entry(5), entry(4), state(5), entry(5)}, []CommitAhead{at(5, 4)}},
	} {
		var w aheadWatch
		for _, s := range c.steps {
			s(&w)
		}
		if !slices.Equal(w.found, c.want) {
			t.Errorf("%s: %+v, want %+v", name, w.found, c.want)
		}
	}
	var w aheadWatch
	for _, s := range []step{entry(5), snap(20), state(20), entry(21), state(22), snap(22), entry(23), state(24),
		old(24)} {
		s(&w)
	}
	if want := []uint64{21}; !slices.Equal(w.removed, want) {
		t.Errorf("removed after %d, want %d", w.removed, want)
	}
	w = aheadWatch{}
	for i := range uint64(2 * maxCommitAheads) {
		w.entry(0, i+1)
		w.state(HardState{Commit: i + 2}, Pos{})
	}
	if len(w.found) != maxCommitAheads {
		t.Errorf("%d are listed", len(w.found))
	}
}

// TestAheadOverSegments: the watch of the segments before continues at the begin of the next one, which repeats the
// last HardState, and with segments that hold no entry.
func TestAheadOverSegments(t *testing.T) {
	type step func(w *aheadWatch)
	entry := func(i uint64) step { return func(w *aheadWatch) { w.entry(4, i) } }
	state := func(c uint64) step { return func(w *aheadWatch) { w.state(HardState{Term: 4, Commit: c}, Pos{}) } }
	snap := func(i uint64, configured bool) step { return func(w *aheadWatch) { w.snapshot(4, i, configured) } }
	lost := func(w *aheadWatch) { w.lost() }
	for name, c := range map[string]struct {
		segments [][]step
		found    []uint64 // the last entries before
		removed  []uint64
	}{
		"in order": {[][]step{{entry(5), state(5)}, {state(5), entry(6), state(6)}, {state(6), entry(7)}}, nil, nil},
		"its last entry is gone, with a snapshot there": {[][]step{{entry(5), state(6)},
			{state(6), snap(6, true), entry(7)}}, nil, []uint64{5}},
		"the others renumbered": {[][]step{{entry(5), state(6)}, {state(6), entry(6)}}, []uint64{5}, nil},
		"a snapshot was received": {[][]step{{entry(5), state(5)}, {state(5), snap(9, true), state(9), entry(10)}}, nil,
			nil},
		"in 3.4, from a leader that had the entries": {[][]step{{entry(5), state(5)},
			{state(5), snap(9, false), state(9), entry(10)}}, nil, []uint64{5}},
		"in 3.4, and the HardState is a repeated one": {[][]step{{entry(5), state(5), snap(9, false)},
			{state(5), entry(10)}}, nil, nil},
		"a segment without entries between": {[][]step{{entry(5), state(6)}, {state(6)}, {state(6), snap(6, true),
			entry(7)}}, nil, []uint64{5}},
		"records were lost at the end":   {[][]step{{entry(5), state(6), lost}, {state(6), entry(6)}}, nil, nil},
		"records were lost at the begin": {[][]step{{entry(5), state(6)}, {lost, state(6), entry(6)}}, nil, nil},
	} {
		var all aheadWatch
		var found, removed []uint64
		for _, steps := range c.segments {
			var own, over aheadWatch
			for _, s := range steps {
				s(&own)
			}
			over, all = all.over(&own)
			for _, w := range []aheadWatch{over, own} {
				for _, f := range w.found {
					found = append(found, f.Last)
				}
				removed = append(removed, w.removed...)
			}
		}
		if !slices.Equal(found, c.found) || !slices.Equal(removed, c.removed) {
			t.Errorf("%s: found %d, removed %d", name, found, removed)
		}
	}
	var own aheadWatch
	for i := range uint64(3 * maxHead) {
		own.state(HardState{Commit: i}, Pos{})
	}
	if len(own.head) != maxHead {
		t.Errorf("%d records of a head are kept", len(own.head))
	}
}

// TestShortOfASnapshot: up to 3.4, a member that has an entry of the leader's term, and lacks fewer than a leader
// keeps, is sent no snapshot: it took the snapshot itself, and entries before it were removed.
func TestShortOfASnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		last, entryTerm, before, index, term, after uint64
		configured, want                            bool
	}{
		"the entry is gone":                {5, 4, 4, 6, 4, 4, false, true},
		"as many as a leader keeps":        {5, 4, 4, 5005, 4, 4, false, false},
		"one less":                         {5, 4, 4, 5004, 4, 4, false, true},
		"its own, nothing is gone":         {6, 4, 4, 6, 4, 4, false, false},
		"an entry of an earlier term":      {5, 3, 4, 6, 4, 4, false, false},
		"the leader of a later term":       {5, 4, 5, 6, 4, 5, false, false},
		"one that the record comes before": {5, 4, 4, 6, 4, 5, false, false},
		"a record of 3.5":                  {5, 4, 4, 6, 4, 4, true, false},
		"no entry before it":               {0, 0, 4, 6, 4, 4, false, false},
	} {
		var w aheadWatch
		if c.last > 0 {
			w.entry(c.entryTerm, c.last)
		}
		w.state(HardState{Term: c.before, Commit: c.last}, Pos{})
		w.snapshot(c.term, c.index, c.configured)
		w.state(HardState{Term: c.after, Commit: c.index}, Pos{})
		var want []uint64
		if c.want {
			want = []uint64{c.last}
		}
		if !slices.Equal(w.removed, want) {
			t.Errorf("%s: removed after %d, want %d", name, w.removed, want)
		}
	}
}
