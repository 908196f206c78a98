package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestContradicted: the first entry that two databases contradict, and more than logs hold it, and none confirms is
// doubted next.
func TestContradicted(t *testing.T) {
	event := func(index uint64, states ...State) *Event {
		e := &Event{Index: index, Term: 2, logs: 1, What: "w"}
		for _, s := range states {
			e.Outcomes = append(e.Outcomes, Outcome{State: s})
		}
		return e
	}
	inTwo, disputed := event(3, Missing, Missing), event(4, Missing, Missing)
	inTwo.logs, disputed.versions = 2, map[int]Version{1: {}}
	inNone, twoOfThree, inThree := event(2, Missing, Missing), event(9, Missing, Missing, Missing),
		event(10, Missing, Missing, Missing)
	inNone.logs, twoOfThree.logs, inThree.logs = 0, 2, 3
	r := &Result{Events: []*Event{inNone, inTwo, disputed, inThree, event(5, Missing, Unknown, NoEffect),
		event(6, Missing, Missing, Applied),
		event(7, Contradicted, Missing, Unknown), event(8, Missing, Missing, Missing),
		twoOfThree}}
	for i := range dumplog.ID(3) {
		m := &evidence.Member{MemberID: i + 1, WAL: evidence.WAL{Log: &dumplog.Log{}}}
		m.WAL.Summary.LastIndex = 9
		r.Members = append(r.Members, &MemberResult{Member: m})
	}
	tried := map[uint64]bool{}
	for _, want := range []uint64{7, 8, 9} {
		d := r.contradicted(tried)
		if d == nil || d.Index != want || d.Term != 2 || d.What != "w" || !strings.HasPrefix(d.Seen, "missing") {
			t.Fatalf("%+v, want entry %d", d, want)
		}
		tried[want] = true
	}
	if d := r.contradicted(tried); d != nil {
		t.Errorf("%+v", d)
	}
}

// TestSurplusWitnesses: members that executed the log themselves, and of whose database something is left open.
func TestSurplusWitnesses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *MemberResult)
		want   int
	}{
		"all":               {func(*MemberResult) {}, 3},
		"one is explained":  {func(m *MemberResult) { m.Extra = nil }, 2},
		"one is no member":  {func(m *MemberResult) { m.Member.MemberID = 0 }, 2},
		"one has no log":    {func(m *MemberResult) { m.Member.WAL = evidence.WAL{} }, 2},
		"two are one":       {func(m *MemberResult) { m.Member.MemberID = 2 }, 1},
		"a later snapshot":  {func(m *MemberResult) { m.Member.WAL.Summary.Jumps = []dumplog.Jump{{From: 3, To: 9}} }, 2},
		"an older snapshot": {func(m *MemberResult) { m.Member.WAL.Summary.Jumps = []dumplog.Jump{{From: 3, To: 8}} }, 3},
	} {
		r := &Result{}
		for i := range dumplog.ID(3) {
			m := &evidence.Member{MemberID: i + 1, AppliedMax: 9, WAL: evidence.WAL{Log: &dumplog.Log{}}}
			m.WAL.Summary.LastIndex = 9
			r.Members = append(r.Members, &MemberResult{Member: m, Extra: []int64{5}})
		}
		c.change(r.Members[0])
		if got := r.surplusWitnesses(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestNoteEmptied: entries without content are noted unless they begin a term, up to a bound.
func TestNoteEmptied(t *testing.T) {
	s := &Survey{}
	note := func(index, term uint64, data string) {
		s.noteEmptied(&item{entry: dumplog.Entry{Index: index, Term: term, Data: []byte(data)}})
	}
	note(1, 2, "")
	note(2, 2, "x")
	note(3, 2, "")
	note(4, 3, "")
	note(5, 3, "")
	if want := []entryID{{3, 2}, {5, 3}}; !slices.Equal(s.emptied, want) {
		t.Errorf("%v, want %v", s.emptied, want)
	}
	for i := range uint64(maxEmptied) {
		note(6+i, 3, "")
	}
	if n := len(s.emptied); n != maxEmptied {
		t.Errorf("%d are kept", n)
	}
}

// TestDoubtful: an entry without content that one log holds is tried before a later one that databases contradict, then
// the next ones after a doubted entry, up to a bound; with fewer than two databases that are left open, none of them.
func TestDoubtful(t *testing.T) {
	// The entries 15 to 24 are in the first log only.
	r := run(t, open(t, handLogs(t, from1(20), from1(10), from1(10))...), Options{})
	if n := r.surplusWitnesses(); n != 0 || r.Last != 24 || r.LogsWith(2, 14) != 3 || r.LogsWith(2, 15) != 1 {
		t.Fatalf("%d databases are left open, the log ends at %d", n, r.Last)
	}
	contradicted := &Event{Index: 17, Term: 2, logs: 1, What: "w", Outcomes: []Outcome{{}, {State: Missing},
		{State: Missing}}}
	emptied := []entryID{{10, 2}, {16, 2}, {16, 2}, {18, 2}}
	upTo := func(from, to uint64) map[uint64]bool {
		tried := map[uint64]bool{}
		for i := from; i <= to; i++ {
			tried[i] = true
		}
		return tried
	}
	for name, c := range map[string]struct {
		events  []*Event
		emptied []entryID
		doubted uint64
		tried   map[uint64]bool
		open    int
		want    uint64
		seen    string
	}{
		"nothing":                       {open: 2},
		"a contradicted one":            {events: []*Event{contradicted}, open: 1, want: 17, seen: "missing: "},
		"one without content before it": {[]*Event{contradicted}, emptied, 0, nil, 2, 16, "records that no entry explains"},
		"that was tried":                {[]*Event{contradicted}, emptied, 0, upTo(16, 16), 2, 17, "missing: "},
		"all before it were tried":      {nil, emptied, 0, upTo(16, 16), 2, 18, "records that no entry explains"},
		"one database is left open":     {[]*Event{contradicted}, emptied, 0, nil, 1, 17, "missing: "},
		"the one after a doubted one":   {doubted: 15, open: 2, want: 16, seen: "records of another entry"},
		"it is in all logs":             {doubted: 12, open: 2, want: 15, seen: "records of another entry"},
		"the eighth":                    {doubted: 15, tried: upTo(16, 22), open: 2, want: 23, seen: "records of another entry"},
		"no more than eight":            {doubted: 15, tried: upTo(16, 23), open: 2},
		"none is after it":              {doubted: 24, open: 2},
	} {
		r.Events, r.Survey.emptied, r.Doubted = c.events, c.emptied, nil
		if c.doubted > 0 {
			r.Doubted = []Doubted{{Index: c.doubted, Term: 2, Logs: []int{0}}}
		}
		for i, m := range r.Members {
			m.Extra = nil
			if i > 0 && i <= c.open {
				m.Extra = []int64{99}
			}
		}
		d, err := r.doubtful(t.Context(), c.tried)
		if err != nil || (d != nil) != (c.want > 0) {
			t.Errorf("%s: %+v, %v", name, d, err)
			continue
		}
		if d == nil {
			continue
		}
		if d.Index != c.want || d.Term != 2 || !slices.Equal(d.Logs, []int{0}) || d.Seen != c.seen ||
			c.want == 17 != (d.What == "w") ||
			c.want != 17 && !strings.HasPrefix(d.What, fmt.Sprintf("2/%d ", c.want)) {
			t.Errorf("%s: %+v, want %d", name, d, c.want)
		}
	}
}

// TestContradicts: a database contradicts an entry if it holds other records in its place. One that lacks the effect
// does not.
func TestContradicts(t *testing.T) {
	r := &Result{Events: []*Event{{Index: 7, Outcomes: []Outcome{{State: Applied}, {State: Contradicted}}},
		{Index: 9, Outcomes: []Outcome{{State: Missing}}}}}
	for index, want := range map[uint64]bool{6: false, 7: true, 8: false, 9: false} {
		if got := r.Contradicts(index); got != want {
			t.Errorf("entry %d: %v", index, got)
		}
	}
}

// TestStrayInPlace: records that no entry explains, the same on two databases that their members wrote themselves, make
// the entry in their place one to try if only one log holds it.
func TestStrayInPlace(t *testing.T) {
	at := func(rev int64, sig, index uint64) stray { return stray{rev, sig, entryID{index, 2}} }
	for name, c := range map[string]struct {
		strays [3][]stray
		tried  uint64
		change func(r *Result)
		want   uint64
	}{
		"none":          {},
		"on two":        {strays: [3][]stray{{at(5, 1, 7)}, {at(5, 1, 7)}}, want: 7},
		"on one":        {strays: [3][]stray{{at(5, 1, 7)}}},
		"the first one": {strays: [3][]stray{{at(6, 1, 8), at(5, 1, 7)}, {at(6, 1, 8), at(5, 1, 7)}}, want: 7},
		"the next one": {strays: [3][]stray{{at(5, 1, 7), at(6, 1, 8)}, {at(5, 1, 7), at(6, 1, 8)}}, tried: 7,
			want: 8},
		"of another content":   {strays: [3][]stray{{at(5, 1, 7)}, {at(5, 2, 7)}}},
		"at another revision":  {strays: [3][]stray{{at(5, 1, 7)}, {at(6, 1, 7)}}},
		"at another entry":     {strays: [3][]stray{{at(5, 1, 7)}, {at(5, 1, 8)}}},
		"an entry of two logs": {strays: [3][]stray{{at(5, 1, 3)}, {at(5, 1, 3)}}},
		"on two, one without a log": {strays: [3][]stray{{at(5, 1, 7)}, nil, {at(5, 1, 7)}},
			change: func(r *Result) { r.Members[2].Member.WAL.Log = nil }},
		"on the last two": {strays: [3][]stray{nil, {at(5, 1, 7)}, {at(5, 1, 7)}}, want: 7},
		"one received it": {strays: [3][]stray{{at(5, 1, 7)}, {at(5, 1, 7)}}, change: func(r *Result) {
			r.Members[1].Member.WAL.Summary.Jumps = []dumplog.Jump{{From: 3, To: 7}}
		}},
	} {
		r := &Result{}
		for i := range 3 {
			m := &evidence.Member{MemberID: dumplog.ID(i + 1), WAL: evidence.WAL{Log: &dumplog.Log{}}}
			m.WAL.Summary.LastIndex = []uint64{9, 5, 5}[i]
			m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: m.WAL.Summary.LastIndex}}
			r.Members = append(r.Members, &MemberResult{Member: m, strays: c.strays[i]})
		}
		if c.change != nil {
			c.change(r)
		}
		got := uint64(0)
		if d := r.strayInPlace(map[uint64]bool{c.tried: true}); d != nil {
			got = d.Index
		}
		if got != c.want {
			t.Errorf("%s: entry %d, want %d", name, got, c.want)
		}
	}
}
