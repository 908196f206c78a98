package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

const (
	add    = dumplog.ConfChangeAddNode
	addLrn = dumplog.ConfChangeAddLearnerNode
	remove = dumplog.ConfChangeRemoveNode
	update = dumplog.ConfChangeUpdateNode
	// logEnd is the last entry.
	logEnd = 70
)

// conf is a conf change at an index.
func conf(index uint64, kind dumplog.ConfChangeType, id dumplog.ID) evidence.ConfEntry {
	return evidence.ConfEntry{Index: index, Change: dumplog.ConfChange{Type: kind, NodeID: id}}
}

// member has a log of conf changes, and the configuration at its end.
func member(changes []evidence.ConfEntry, learners []dumplog.ID, voters ...dumplog.ID) *evidence.Member {
	m := &evidence.Member{Source: &evidence.Source{Name: "node1"}, MemberID: 1, Commit: 65,
		WAL: evidence.WAL{Conf: changes}}
	m.WAL.Summary.LastIndex = logEnd
	m.Membership = evidence.Membership{RaftKnown: true, Voters: voters, Learners: learners}
	return m
}

// TestRoles: each member has the spans in which it was a voter or a learner, whatever was done to it.
func TestRoles(t *testing.T) {
	refused := conf(60, remove, 2)
	refused.Refused = true
	start := []evidence.ConfEntry{conf(3, add, 1), conf(4, add, 2)}
	for _, c := range []struct {
		name     string
		changes  []evidence.ConfEntry
		learners []dumplog.ID
		voters   []dumplog.ID
		id       dumplog.ID
		want     string
	}{
		{"founded", nil, nil, nil, 1, "3-70 voter"},
		{"refused change", []evidence.ConfEntry{refused}, nil, nil, 2, "4-70 voter"},
		{"change that is not committed", []evidence.ConfEntry{conf(66, remove, 2)}, nil, nil, 2, "4-70 voter"},
		{"change at the commit index", []evidence.ConfEntry{conf(65, add, 3)}, nil, []dumplog.ID{3}, 3, "65-70 voter"},
		{"added twice", []evidence.ConfEntry{conf(25, add, 2)}, nil, nil, 2, "4-70 voter"},
		{"other address", []evidence.ConfEntry{conf(25, update, 2)}, nil, nil, 2, "4-70 voter"},
		{"removed", []evidence.ConfEntry{conf(5, add, 3), conf(40, remove, 3)}, nil, nil, 3, "5-39 voter"},
		{"added again", []evidence.ConfEntry{conf(5, add, 3), conf(12, remove, 3), conf(18, add, 3)}, nil,
			[]dumplog.ID{3}, 3, "5-11 voter, 18-70 voter"},
		{"learner", []evidence.ConfEntry{conf(20, addLrn, 4)}, []dumplog.ID{4}, nil, 4, "20-70 learner"},
		{"promoted", []evidence.ConfEntry{conf(20, addLrn, 4), conf(30, add, 4)}, nil, []dumplog.ID{4}, 4,
			"20-29 learner, 30-70 voter"},
		{"removed learner", []evidence.ConfEntry{conf(45, addLrn, 6), conf(55, remove, 6)}, nil, nil, 6,
			"45-54 learner"},
		{"promoted and removed", []evidence.ConfEntry{conf(45, addLrn, 6), conf(50, add, 6), conf(55, remove, 6)}, nil,
			nil, 6, "45-49 learner, 50-54 voter"},
		{"learner after a removal", []evidence.ConfEntry{conf(5, add, 3), conf(12, remove, 3), conf(18, addLrn, 3)},
			[]dumplog.ID{3}, nil, 3, "5-11 voter, 18-70 learner"},
		{"removed, added before the log", []evidence.ConfEntry{conf(10, remove, 7)}, nil, nil, 7, "1-9 voter"},
		{"learner first in the log, removed", []evidence.ConfEntry{conf(1, addLrn, 6), conf(9, remove, 6)}, nil, nil, 6,
			"1-8 learner"},
		{"there before the log", nil, nil, []dumplog.ID{9}, 9, "1-70 voter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := slices.Concat(start, c.changes)
			slices.SortStableFunc(changes, func(a, b evidence.ConfEntry) int { return int(a.Index) - int(b.Index) })
			m := member(changes, c.learners, append([]dumplog.ID{1, 2}, c.voters...)...)
			b := &builder{in: Input{Members: []*evidence.Member{m}}, t: &Timeline{First: 1, Last: logEnd},
				names: names([]*evidence.Member{m})}
			b.history()
			got := "none"
			for i, h := range b.t.History {
				if i > 0 && h.Spans[0].From < b.t.History[i-1].Spans[0].From {
					t.Errorf("not in order: %+v", b.t.History)
				}
				if h.ID == c.id {
					var spans []string
					for _, s := range h.Spans {
						spans = append(spans, fmt.Sprintf("%d-%d %s", s.From, s.To, s.What))
					}
					got = strings.Join(spans, ", ")
				}
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestNewest: roles come from the member that knows most; without any there are none.
func TestNewest(t *testing.T) {
	far, near, blind, long := member(nil, nil, 1), member(nil, nil, 1), member(nil, nil, 1), member(nil, nil, 1)
	near.Commit, blind.Commit, blind.Membership.RaftKnown = 60, 99, false
	far.WAL.Log, far.WAL.Summary.FirstIndex = &dumplog.Log{}, 40
	long.WAL.Log, long.WAL.Summary.FirstIndex = &dumplog.Log{}, 1
	plain, empty := member(nil, nil, 1), member(nil, nil)
	empty.Commit = 99
	for name, c := range map[string]struct {
		in   []*evidence.Member
		want *evidence.Member
	}{
		"higher commit index": {[]*evidence.Member{near, far}, far}, "lower commit index": {[]*evidence.Member{far, near}, far},
		"unknown configuration": {[]*evidence.Member{near, blind}, near}, "no voters": {[]*evidence.Member{near, empty}, near},
		"longer log": {[]*evidence.Member{far, long}, long}, "shorter log": {[]*evidence.Member{long, far}, long},
		"a log": {[]*evidence.Member{plain, far}, far}, "none": {[]*evidence.Member{far, plain}, far},
		"no configuration": {[]*evidence.Member{blind, empty}, nil},
	} {
		b := &builder{in: Input{Members: c.in}, t: &Timeline{}}
		if got := b.newest(); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if b.history(); (len(b.t.History) > 0) != (c.want != nil) {
			t.Errorf("%s: %+v", name, b.t.History)
		}
	}
}

// TestTerms: a term has the leader that the logs voted for, and is elected with a majority only.
func TestTerms(t *testing.T) {
	voted := func(id dumplog.ID, name string, votes ...dumplog.Vote) *evidence.Member {
		m := &evidence.Member{Source: &evidence.Source{Name: name}, MemberID: id, Commit: uint64(id),
			WAL: evidence.WAL{Log: &dumplog.Log{}, LastByTerm: []evidence.TermEnd{{Term: 2, First: 4, Last: 9},
				{Term: 3, First: 10, Last: 20 + uint64(id)}, {Term: 5, First: 30, Last: 31}}}}
		m.WAL.Summary.Votes = votes
		m.Membership.Voters = []dumplog.ID{1, 2, 3}
		return m
	}
	one := voted(1, "node1", dumplog.Vote{Term: 2, For: 1}, dumplog.Vote{Term: 3, For: 2}, dumplog.Vote{Term: 5, For: 1})
	two := voted(2, "node2", dumplog.Vote{Term: 2, For: 1}, dumplog.Vote{Term: 5, For: 2})
	copied := voted(2, "copy", dumplog.Vote{Term: 3, For: 2}, dumplog.Vote{Term: 5, For: 2})
	one.WAL.LastByTerm[0].First = 3
	unnamed, noLog := voted(0, "unnamed", dumplog.Vote{Term: 5, For: 2}), voted(3, "db", dumplog.Vote{Term: 5, For: 2})
	noLog.WAL.Log, noLog.WAL.LastByTerm = nil, nil
	b := &builder{in: Input{Members: []*evidence.Member{one, two, copied, unnamed, noLog}}, t: &Timeline{}}
	b.names = names(b.in.Members[:2])
	b.terms()
	want := []Term{{Term: 2, Span: Span{From: 3, To: 9}, Leader: "node1", Elected: true, Votes: 2},
		{Term: 3, Span: Span{From: 10, To: 22}, Leader: "node2", Votes: 1}, {Term: 5, Span: Span{From: 30, To: 31}}}
	if d := cmp.Diff(want, b.t.Terms); d != "" {
		t.Error(d)
	}
	three := voted(3, "node3", dumplog.Vote{Term: 5, For: 2})
	b = &builder{in: Input{Members: []*evidence.Member{one, two, three}}, t: &Timeline{}}
	b.names = names(b.in.Members)
	b.terms()
	if got := b.t.Terms[2]; got.Leader != "node2" || !got.Elected || got.Votes != 2 {
		t.Errorf("%+v", got)
	}
	// The first log was purged up to the last term.
	one.WAL.LastByTerm = one.WAL.LastByTerm[2:]
	b.t.Terms = nil
	b.terms()
	var order []uint64
	for i := range b.t.Terms {
		order = append(order, b.t.Terms[i].Term)
	}
	if !slices.Equal(order, []uint64{2, 3, 5}) {
		t.Errorf("terms %v", order)
	}
	// Of members with one commit index the first one tells how many votes are a majority.
	three.Commit, three.Membership.Voters = two.Commit, []dumplog.ID{3}
	b.in.Members = []*evidence.Member{two, three}
	if _, quorum := b.votes(); quorum != 2 {
		t.Errorf("quorum %d", quorum)
	}
}

// TestLogRanges: what is purged, replaced by a snapshot or damaged in a log is a range of its lane.
func TestLogRanges(t *testing.T) {
	b := &builder{t: &Timeline{Last: 200}}
	var l Lane
	b.logOf(&l, &dumplog.Summary{FirstIndex: 1, LastIndex: 100})
	if l.LogFrom != 1 || l.LogTo != 100 || len(l.Purged)+len(l.Skipped)+len(l.Damaged) > 0 {
		t.Errorf("%+v", l)
	}
	pos := dumplog.Pos{Segment: "1.wal", Offset: 8}
	s := &dumplog.Summary{FirstIndex: 2, LastIndex: 100,
		Jumps: []dumplog.Jump{{From: 40, To: 50}, {From: 60, To: 59}, {From: 65, To: 65}},
		Damage: []*dumplog.DamageError{{Pos: pos, Kind: dumplog.DamageCRC, LostFrom: 70, LostTo: 72},
			{Pos: pos, Kind: dumplog.DamageTornTail}, {Pos: pos, Kind: dumplog.DamageLostTail, LostFrom: 90},
			{Pos: pos, Kind: dumplog.DamageLostTail, LostFrom: 300}}}
	b.logOf(&l, s)
	want := Lane{LogFrom: 2, LogTo: 100, Purged: []Span{{1, 1, "not in its log: purged, or before it joined"}},
		Skipped: []Span{{40, 50, "replaced by a snapshot from the leader"},
			{65, 65, "replaced by a snapshot from the leader"}}, Damaged: []Span{
			{70, 72, "crc-mismatch in 1.wal at offset 8"}, {90, 200, "lost-tail in 1.wal at offset 8"},
			{300, 300, "lost-tail in 1.wal at offset 8"}}}
	if d := cmp.Diff(want, l); d != "" {
		t.Error(d)
	}
	s.Start = dumplog.StartPurged
	if b.logOf(&l, s); l.Purged[1].What != "purged from its log" {
		t.Errorf("%+v", l.Purged)
	}
}

// TestHiddenRanges: an unknown revision lasts to the next point, or to the end of what was replayed.
func TestHiddenRanges(t *testing.T) {
	var l Lane
	l.hidden(&replay.MemberResult{To: 99, Curve: replay.Curve{Points: []replay.Point{{Index: 1, Revision: 5},
		{Index: 10}, {Index: 20, Revision: 9}, {Index: 90}}}})
	const what = "the database does not show what these entries did"
	if d := cmp.Diff([]Span{{10, 19, what}, {90, 99, what}}, l.Hidden); d != "" {
		t.Error(d)
	}
}

// TestProcesses: a process lasts until the next one of the same member begins; one of several possible members belongs
// to no lane.
func TestProcesses(t *testing.T) {
	b := &builder{lives: []dumplog.Life{{Members: []dumplog.ID{1}, First: 5, Last: 9, Requests: 3, Publish: 5},
		{Members: []dumplog.ID{2}, First: 6, Last: 8}, {Members: []dumplog.ID{1, 3}, First: 7, Last: 8},
		{Members: []dumplog.ID{1}, First: 30, Last: 60, Inferred: true}, {First: 31, Last: 33}}}
	l := Lane{ID: 1, LogTo: 50}
	b.livesOf(&l)
	if len(l.Lives) != 2 || l.Lives[0].Span != (Span{From: 5, To: 29}) || l.Lives[1].Span != (Span{From: 30, To: 60}) ||
		l.Lives[0].Requests != 3 || l.Lives[0].Publish != 5 || l.Lives[0].Inferred || !l.Lives[1].Inferred {
		t.Errorf("%+v", l.Lives)
	}
	l = Lane{ID: 2, LogTo: 50}
	if b.livesOf(&l); len(l.Lives) != 1 || l.Lives[0].Span != (Span{From: 6, To: 50}) {
		t.Errorf("%+v", l.Lives)
	}
	l, b.lives[4].Members = Lane{}, []dumplog.ID{0}
	if b.livesOf(&l); len(l.Lives) > 0 {
		t.Errorf("a member of unknown ID: %+v", l.Lives)
	}
}

// TestListed: of a long log the surroundings of the break are listed, then the end, then marks, as far as there is
// room.
func TestListed(t *testing.T) {
	for _, c := range []struct {
		name         string
		last, broken uint64
		max          int
		marks        []uint64
		want         []Span
	}{
		{"short", 100, 50, 100, nil, []Span{{From: 1, To: 100}}},
		{"one more", 101, 50, 100, nil, []Span{{From: 1, To: 100}}},
		{"nothing broke", 101, 0, 100, nil, []Span{{From: 51, To: 101}}},
		{"room for the break only", 1000, 500, 100, nil, []Span{{From: 450, To: 550}}},
		{"break, end and marks", 100_000, 50_000, 5000, []uint64{10, 50_001, 99_490}, []Span{{From: 1, To: 30},
			{From: 48_500, To: 51_500}, {From: 99_470, To: 100_000}}},
		{"break at the start", 100_000, 3, 2000, nil, []Span{{From: 1, To: 1003}, {From: 99_502, To: 100_000}}},
	} {
		b := &builder{in: Input{Break: c.broken, Replay: &replay.Result{}}, o: Options{MaxEntries: c.max},
			t: &Timeline{First: 1, Last: c.last}}
		for _, i := range c.marks {
			b.t.Marks = append(b.t.Marks, Moment{Index: i})
		}
		if d := cmp.Diff(c.want, b.listed()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestMerge: ranges that touch or overlap are one, others stay apart.
func TestMerge(t *testing.T) {
	got := merge([]Span{{From: 30, To: 40}, {From: 1, To: 9}, {From: 10, To: 12}, {From: 14, To: 20},
		{From: 15, To: 16}})
	want := []Span{{From: 1, To: 12}, {From: 14, To: 20}, {From: 30, To: 40}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for index, in := range map[uint64]bool{1: true, 12: true, 13: false, 14: true, 20: true, 21: false, 41: false} {
		if covers(want, index) != in {
			t.Errorf("%d is covered: %v", index, !in)
		}
	}
}

// TestTimes: times only rise, and many are thinned evenly, with the last one kept.
func TestTimes(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(index uint64, s int) dumplog.TimeMark {
		return dumplog.TimeMark{Index: index, Time: start.Add(time.Duration(s) * time.Second), Source: "lease"}
	}
	b := &builder{t: &Timeline{}}
	b.times([]dumplog.TimeMark{at(1, 5), at(2, 4), at(3, 5), at(4, 9)})
	want := []Time{{1, at(0, 5).Time.UnixMilli(), "lease"}, {3, at(0, 5).Time.UnixMilli(), "lease"},
		{4, at(0, 9).Time.UnixMilli(), "lease"}}
	if d := cmp.Diff(want, b.t.Times); d != "" {
		t.Error(d)
	}
	for n, kept := range map[int]int{1999: 1999, 2000: 1001, 4001: 1335} {
		b = &builder{t: &Timeline{}}
		var marks []dumplog.TimeMark
		for i := range n {
			marks = append(marks, at(uint64(i), i))
		}
		b.times(marks)
		if got := b.t.Times; len(got) != kept || got[0].Index != 0 || got[len(got)-1].Index != uint64(n-1) {
			t.Errorf("%d of %d, the last is %d", len(got), n, got[len(got)-1].Index)
		}
	}
}

// TestLackingByBin: missing effects are counted by lane and bin; what is outside the log is not counted.
func TestLackingByBin(t *testing.T) {
	b := &builder{in: Input{Members: make([]*evidence.Member, 2), Replay: &replay.Result{Events: []*replay.Event{
		{Index: 99, Lacking: []int{0}}, {Index: 100, Lacking: []int{0}}, {Index: 102, Lacking: []int{0, 1}},
		{Index: 2100, Lacking: []int{1}}, {Index: 2101, Lacking: []int{1}}}}}, t: &Timeline{First: 100, Last: 2100}}
	got := b.lacking()
	if len(got[0]) != 667 || got[0][0] != 2 || got[1][0] != 1 || got[1][666] != 1 {
		t.Errorf("%d bins, first %d and %d, last %d", len(got[0]), got[0][0], got[1][0], got[1][len(got[1])-1])
	}
	if b.firstLack(0) != 99 || b.firstLack(1) != 102 {
		t.Errorf("first %d and %d", b.firstLack(0), b.firstLack(1))
	}
	if n := (&builder{in: Input{Replay: &replay.Result{}}}).firstLack(0); n != 0 {
		t.Errorf("without events %d", n)
	}
}

// TestNames: a label wins over the name in a member list, and a member without any goes by its ID.
func TestNames(t *testing.T) {
	m := member(nil, nil, 1)
	m.Membership.Names = map[dumplog.ID]string{1: "etcd-a", 2: "etcd-b"}
	b := &builder{names: names([]*evidence.Member{m, {Source: &evidence.Source{Name: "backup"}}})}
	for id, want := range map[dumplog.ID]string{0: "", 1: "node1", 2: "etcd-b", 0xab: dumplog.ID(0xab).String()} {
		if got := b.name(id); got != want {
			t.Errorf("%d: %q, want %q", id, got, want)
		}
	}
}

// TestClip: a text is cut at a rune, and only if it is too long.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aé", 2, "a…"}, {"é", 1, "…"}, {"aéb", 3, "aé…"}} {
		if got := Clip(c.in, c.n); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.in, c.n, got, c.want)
		}
	}
	long := strings.Repeat("a", maxKey/2-1) + strings.Repeat("é", maxKey)
	if got := EscapeKey([]byte(long)); got != strings.Repeat("a", keyHead-1)+"…"+strings.Repeat("é", keyTail/2)+
		fmt.Sprintf(" <len %d>", len(long)) {
		t.Errorf("%q", got)
	}
	if got := EscapeKey([]byte(long + "z")); !strings.Contains(got, "…"+strings.Repeat("é", keyTail/2-1)+"z <len") {
		t.Errorf("cut inside of a rune: %q", got)
	}
	if got := EscapeKey([]byte(long[:maxKey-1] + "z")); strings.Contains(got, "<len") {
		t.Errorf("a key of %d bytes is cut: %q", maxKey, got)
	}
}

// TestNoLog: there is nothing to draw without a log.
func TestNoLog(t *testing.T) {
	for _, r := range []*replay.Result{nil, {}, {Survey: &replay.Survey{}}, {First: 3}} {
		if tl, err := Build(t.Context(), Input{Replay: r}, Options{}); tl != nil || err != nil {
			t.Errorf("%+v: %+v, %v", r, tl, err)
		}
	}
}

// TestForgotten: what damage covers already is not listed a second time as lost.
func TestForgotten(t *testing.T) {
	for _, c := range []struct {
		damaged []Span
		lost    Span
		want    string
	}{
		{nil, Span{}, ""},
		{nil, Span{From: 8, To: 9}, "8-9"},
		{[]Span{{From: 3, To: 4}}, Span{From: 8, To: 9}, "3-4 8-9"},
		{[]Span{{From: 3, To: 8}}, Span{From: 8, To: 12}, "3-8 9-12"},
		{[]Span{{From: 8, To: 12}}, Span{From: 8, To: 12}, "8-12"},
		{[]Span{{From: 3, To: 40}}, Span{From: 8, To: 12}, "3-40"},
		{[]Span{{From: 12, To: 12}}, Span{From: 8, To: 12}, "12-12 8-12"},
	} {
		l := Lane{Damaged: c.damaged}
		l.forgot(c.lost)
		var got []string
		for _, s := range l.Damaged {
			got = append(got, fmt.Sprintf("%d-%d", s.From, s.To))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("lost %v of %v: %q, want %q", c.lost, c.damaged, s, c.want)
		}
	}
}

// TestRoleBefore: the newest earlier change of the member that was not refused decides what it was; those of others and
// refused ones do not.
func TestRoleBefore(t *testing.T) {
	refused := func(kind dumplog.ConfChangeType, id dumplog.ID) evidence.ConfEntry {
		c := conf(9, kind, id)
		c.Refused = true
		return c
	}
	for name, c := range map[string]struct {
		change  dumplog.ConfChangeType
		now     string
		earlier []evidence.ConfEntry
		before  string
		changes bool
	}{
		"added, never before":           {add, voter, nil, "", true},
		"added, others before":          {add, voter, []evidence.ConfEntry{conf(2, add, 4)}, "", true},
		"added, refused before":         {add, voter, []evidence.ConfEntry{refused(add, 3)}, "", true},
		"added to no effect":            {add, "", nil, "", false},
		"added twice":                   {add, voter, []evidence.ConfEntry{conf(2, add, 3)}, voter, false},
		"added twice, removed later":    {add, "", []evidence.ConfEntry{conf(2, add, 3)}, voter, true},
		"added after a refused removal": {add, voter, []evidence.ConfEntry{conf(2, add, 3), refused(remove, 3)}, voter, false},
		"added after a removal":         {add, voter, []evidence.ConfEntry{conf(2, add, 3), conf(3, remove, 3)}, "", true},
		"added after another's removal": {add, voter, []evidence.ConfEntry{conf(2, add, 3), conf(3, remove, 4)}, voter, false},
		"promoted":                      {add, voter, []evidence.ConfEntry{conf(2, addLrn, 3)}, learner, true},
		"promotion to no effect":        {add, learner, []evidence.ConfEntry{conf(2, addLrn, 3)}, learner, false},
		"added after a new address":     {add, voter, []evidence.ConfEntry{conf(2, add, 3), conf(3, update, 3)}, voter, false},
		"learner, never before":         {addLrn, learner, nil, "", true},
		"learner that was a voter":      {addLrn, learner, []evidence.ConfEntry{conf(2, add, 3)}, voter, true},
		"removed, unknown before":       {remove, "", nil, voter, true},
		"removed learner":               {remove, "", []evidence.ConfEntry{conf(2, addLrn, 3)}, learner, true},
		"removed, another's learner":    {remove, "", []evidence.ConfEntry{conf(2, addLrn, 4)}, voter, true},
		"removed, refused as learner":   {remove, "", []evidence.ConfEntry{conf(2, add, 3), refused(addLrn, 3)}, voter, true},
		"removed learner, refused as voter": {remove, "", []evidence.ConfEntry{conf(2, addLrn, 3), refused(add, 3)},
			learner, true},
		"removed after a promotion": {remove, "", []evidence.ConfEntry{conf(2, addLrn, 3), conf(3, add, 3)}, voter, true},
		"removed learner, another's promotion": {remove, "", []evidence.ConfEntry{conf(2, addLrn, 3), conf(3, add, 4)},
			learner, true},
		"new address": {update, learner, []evidence.ConfEntry{conf(2, addLrn, 3)}, learner, false},
	} {
		before, changes := roleBefore(c.change, c.now, c.earlier, 3)
		if before != c.before || changes != c.changes {
			t.Errorf("%s: %q, %t; want %q, %t", name, before, changes, c.before, c.changes)
		}
	}
}

// TestHistoryOrder: members that joined at one index are in the order of their IDs; a change that names no member
// changes no role.
func TestHistoryOrder(t *testing.T) {
	m := member([]evidence.ConfEntry{conf(40, remove, 0), conf(50, add, 5)}, []dumplog.ID{4}, 9, 3, 5, 8)
	b := &builder{in: Input{Members: []*evidence.Member{m}}, t: &Timeline{First: 2, Last: logEnd},
		names: map[dumplog.ID]string{4: "etcd-d"}}
	b.history()
	want := []Membership{{ID: 3, Spans: []Span{{2, logEnd, voter}}}, {ID: 4, Spans: []Span{{2, logEnd, learner}}},
		{ID: 8, Spans: []Span{{2, logEnd, voter}}}, {ID: 9, Spans: []Span{{2, logEnd, voter}}},
		{ID: 5, Spans: []Span{{50, logEnd, voter}}}}
	for i := range want {
		want[i].Name = b.name(want[i].ID)
	}
	if d := cmp.Diff(want, b.t.History); d != "" {
		t.Error(d)
	}
}

// TestBytesThatAreNoText: of bytes that continue no character nothing is kept at the cut.
func TestBytesThatAreNoText(t *testing.T) {
	key := []byte(strings.Repeat("\x80", maxKey+1))
	if got, want := EscapeKey(key), fmt.Sprintf("… <len %d>", maxKey+1); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Clip("\x80\x80\x80", 2); got != "…" {
		t.Errorf("%q", got)
	}
}
