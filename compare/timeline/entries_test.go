package timeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// replayed builds the sources of a case, given as lines "verb rest", and replays them.
func replayed(t *testing.T, lines ...string) Input {
	t.Helper()
	var ls []casetest.Line
	for i, l := range lines {
		verb, rest, _ := strings.Cut(l, " ")
		ls = append(ls, casetest.Line{No: i + 1, Verb: verb, Rest: rest})
	}
	set := casetest.Open(t, casetest.Build(t, ls), evidence.Options{})
	rp, err := replay.Run(t.Context(), set.Members, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Input{Members: set.Members, Replay: rp}
}

// built makes the timeline of a case.
func built(t *testing.T, in Input, o Options) *Timeline {
	t.Helper()
	tl, err := Build(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// TestColumns: every entry of a short log is listed with its index, term and kind, and with the user that sent it.
func TestColumns(t *testing.T) {
	long, user := strings.Repeat("k", 1000), strings.Repeat("u", 100)
	in := replayed(t, "script 3.5.0", `step put:<key:"/a" value:"1">`, `step lease_grant:<TTL:60 ID:7>`, "leader 2",
		`step user=app put:<key:"/b" value:"1">`, `step user=`+user+` put:<key:"`+long+`">`,
		`step put:<key:"`+long+`">`, `step auth_role_add:<name:"r">`)
	tl := built(t, in, Options{})
	e := &tl.Entries
	n := len(e.Index)
	if n != int(tl.Last) || len(e.Term) != n || len(e.Kind) != n || len(e.What) != n {
		t.Fatalf("%d entries of %d: %+v", n, tl.Last, e)
	}
	if !slices.Equal(e.Listed, []Span{{From: 1, To: tl.Last}}) {
		t.Errorf("listed: %v", e.Listed)
	}
	counts := make([]int, len(classes))
	for i, index := range e.Index {
		kind := dumplog.Kind(e.Kinds[e.Kind[i]])
		counts[class(kind)]++
		if index != uint64(i+1) {
			t.Errorf("entry %d is listed as number %d", index, i+1)
		}
	}
	for row, want := range counts {
		if got := sum(tl.Density.Counts[row]); got != want {
			t.Errorf("%s: the density counts %d of %d", classes[row], got, want)
		}
	}
	if sorted := slices.Sorted(slices.Values(e.Kinds)); len(slices.Compact(sorted)) != len(e.Kinds) {
		t.Errorf("a kind has two numbers: %v", e.Kinds)
	}
	if e.Term[0] >= e.Term[n-1] || !slices.IsSorted(e.Term) {
		t.Errorf("terms %v", e.Term)
	}
	what := e.What[n-5:]
	if !strings.Contains(what[1], `"/b"`) || !strings.HasSuffix(what[1], " user=app") {
		t.Errorf("put of a user: %q", what[1])
	}
	if at := strings.Index(what[2], "… user="); at != maxText || what[2][at:] != "… user="+user[:60]+"…" {
		t.Errorf("long put of a long user: %q", what[2])
	}
	if !strings.HasSuffix(what[3], "…") || len(what[3]) != maxText+80+len("…") {
		t.Errorf("long put without user: %d bytes, %q", len(what[3]), what[3])
	}
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// TestUndecodableEntry: nothing is said of an entry that does not decode, not even who sent it.
func TestUndecodableEntry(t *testing.T) {
	b := &builder{t: &Timeline{}}
	r := &dumplog.Request{}
	r.Header.Username = "app"
	kinds := map[dumplog.Kind]int{}
	b.list(&replay.Entry{Entry: &dumplog.Entry{Index: 5, Term: 2}, Req: r, Err: errors.New("no request")}, kinds)
	if want := []string{"cannot be decoded"}; !slices.Equal(b.t.Entries.What, want) {
		t.Errorf("%q, want %q", b.t.Entries.What, want)
	}
}

// TestClass: the density tells keys, leases and auth apart; all else is other.
func TestClass(t *testing.T) {
	for kind, want := range map[dumplog.Kind]string{dumplog.KindPut: "keys", dumplog.KindCompaction: "keys",
		dumplog.KindLeaseGrant: "leases", dumplog.KindLeaseCheckpoint: "leases", dumplog.KindAuthEnable: "auth",
		dumplog.KindAuthUserAdd: "auth", dumplog.KindAlarm: "other", dumplog.KindConfChange: "other"} {
		if got := classes[class(kind)]; got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

// TestDensityOfLongLog: up to 1000 entries are counted one by one, more in bins of equal width, from the first entry to
// the last.
func TestDensityOfLongLog(t *testing.T) {
	// Two conf changes, the leader's first entry and what the members publish precede the puts.
	for puts, step := range map[int]uint64{995: 1, 996: 2, 2100: 3} {
		in := replayed(t, "hands a1 a2", "elect", fmt.Sprint("puts ", puts))
		tl := built(t, in, Options{MaxEntries: 10})
		d := &tl.Density
		length := tl.Last - tl.First + 1
		bins := int((length + step - 1) / step)
		if length != uint64(puts+5) || d.From != 1 || d.Step != step || len(d.Counts[0]) != bins ||
			len(d.Lacking) != 2 || len(d.Lacking[0]) != bins {
			t.Errorf("%d puts: %d entries from %d by %d in %d bins", puts, length, d.From, d.Step, len(d.Counts[0]))
			continue
		}
		for at := range bins {
			have, want := 0, min(int(step), int(length)-at*int(step))
			for _, row := range d.Counts {
				have += row[at]
			}
			if have != want {
				t.Errorf("%d puts: bin %d of %d has %d entries, want %d", puts, at, bins, have, want)
			}
		}
		if n := len(tl.Entries.Index); n > 10 || n < 5 {
			t.Errorf("%d of at most 10 entries are listed", n)
		}
	}
}

// TestEntriesBeyondTheLog: entries outside of what the replay has read, as of a log that was written to since, are not
// counted.
func TestEntriesBeyondTheLog(t *testing.T) {
	in := replayed(t, "hands a1 a2", "elect", "puts 20")
	in.Replay.First, in.Replay.Last = 4, in.Replay.Last-3
	tl := built(t, in, Options{})
	n := int(tl.Last - tl.First + 1)
	total := 0
	for _, row := range tl.Density.Counts {
		if total += sum(row); len(row) != n {
			t.Errorf("%d bins of %d entries", len(row), n)
		}
	}
	if total != n || len(tl.Entries.Index) != n || tl.Entries.Index[0] != 4 {
		t.Errorf("%d entries counted, listed %v, want %d", total, tl.Entries.Index, n)
	}
}

// TestListedPlaces: without a break, the first illegal outcome and the jumps of auth revisions come before the end.
func TestListedPlaces(t *testing.T) {
	jumps := func(at ...uint64) *replay.MemberResult {
		m := &replay.MemberResult{}
		for _, i := range at {
			m.Jumps = append(m.Jumps, replay.Jump{Index: i})
		}
		return m
	}
	for _, c := range []struct {
		name         string
		last, broken uint64
		max          int
		members      []*replay.MemberResult
		want         []Span
	}{
		{"jump and end", 100_000, 0, 5000, []*replay.MemberResult{jumps(5000)}, []Span{{From: 4800, To: 5200},
			{From: 99_500, To: 100_000}}},
		{"jumps of two members", 100_000, 0, 5000, []*replay.MemberResult{jumps(5000), jumps(8000, 5100)},
			[]Span{{From: 4800, To: 5200}, {From: 7800, To: 8200}, {From: 99_500, To: 100_000}}},
		{"no more room", 1000, 500, 203, []*replay.MemberResult{jumps(900)}, []Span{{From: 399, To: 601}}},
		{"room for two more", 1000, 500, 3003, nil, []Span{{From: 1, To: 1000}}},
	} {
		b := &builder{in: Input{Break: c.broken, Replay: &replay.Result{Members: c.members}},
			o: Options{MaxEntries: c.max}, t: &Timeline{First: 1, Last: c.last}}
		if d := cmp.Diff(c.want, b.listed()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestFirstBadIsListed: the first illegal outcome is listed also if the report names no break.
func TestFirstBadIsListed(t *testing.T) {
	in := replayed(t, "hands a1 a2 a3", "elect", "puts 60", "unapplied node3", "puts 60", "commit")
	e := in.Replay.Members[2].FirstBad()
	if e == nil || e.Index < 60 || e.Index > 80 {
		t.Fatalf("first illegal outcome of node3: %+v", e)
	}
	for most, around := range map[int]uint64{40: 20, 41: 20, 43: 21} {
		tl := built(t, in, Options{MaxEntries: most})
		want := []Span{{From: e.Index - around, To: e.Index + around}}
		if n := len(tl.Entries.Index); !slices.Equal(tl.Entries.Listed, want) || n != min(most, int(2*around+1)) ||
			tl.Entries.Index[0] != want[0].From {
			t.Errorf("at most %d: listed %v: %v, want %v", most, tl.Entries.Listed, tl.Entries.Index, want)
		}
	}
}

// TestUnsureProposer: a process that may be of one of two known members is on no lane, whether the other one is a
// source, a voter, a learner or removed.
func TestUnsureProposer(t *testing.T) {
	// Request IDs have the low 16 bits of the proposer only.
	const same = 0x1_00a1
	for name, change := range map[string]func(in *Input){
		"source":  func(in *Input) { in.Members[1].MemberID = same },
		"voter":   func(in *Input) { in.Members[1].Membership.Voters = []dumplog.ID{same} },
		"learner": func(in *Input) { in.Members[1].Membership.Learners = []dumplog.ID{same} },
		"removed": func(in *Input) { in.Members[1].Membership.Removed = []dumplog.ID{same} },
		"none":    func(*Input) {},
	} {
		in := replayed(t, "hands a1 a2", "elect", "puts 3")
		change(&in)
		tl := built(t, in, Options{})
		lives := tl.Lanes[0].Lives
		if (len(lives) == 1) != (name == "none") {
			t.Errorf("%s: processes %+v", name, lives)
		}
	}
}

// TestProcessStart: a process shows the time at which it began, and points of time come from its requests.
func TestProcessStart(t *testing.T) {
	tl := built(t, replayed(t, "hands a1 a2", "elect", "puts 3"), Options{})
	lives := tl.Lanes[0].Lives
	if len(lives) != 1 || len(tl.Times) == 0 || lives[0].Requests != 4 || lives[0].Publish != 4 {
		t.Fatalf("processes %+v, times %+v", lives, tl.Times)
	}
	start := lives[0].Start
	// Of the time the IDs have 40 bits, about 35 years. The rest is that of a date near this project.
	if start&(1<<40-1) != 763_000_000_000 || start < 1_000_000_000_000 || tl.Times[0].Unix < start ||
		tl.Times[0].Unix > start+1000 {
		t.Errorf("started at %d, first time %+v", start, tl.Times[0])
	}
}

// TestEvents: what an event shows is the replay's, with texts of bounded length.
func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 1000)
	e := &replay.Event{Index: 9, Term: 2, What: long, Keys: []string{"a\x00", "b", "c", "d"}, Proposer: 1, User: long,
		HeaderAuthRevision: 7, Acked: true, Lacking: []int{1}, Outcomes: []replay.Outcome{
			{State: replay.Applied, Rev: 5, AuthRevision: 7},
			{State: replay.NotApplied, Reason: replay.ReasonKey, Detail: long}}}
	rp := &replay.Result{Events: []*replay.Event{e, {Index: 10}, {Index: 11}}, EventCount: 8}
	b := &builder{in: Input{Replay: rp}, o: Options{MaxEvents: 2}, t: &Timeline{},
		names: map[dumplog.ID]string{1: "node1"}}
	b.events()
	clipped := long[:maxText] + "…"
	want := []Event{{Index: 9, Term: 2, What: clipped, Keys: []string{`a\x00`, "b", "c"}, Proposer: "node1",
		User: long[:60] + "…", HeaderAuth: 7, Acked: true, Lacking: []int{1}, Outcomes: []Outcome{
			{State: replay.Applied.String(), Rev: 5, Auth: 7},
			{State: replay.NotApplied.String(), Reason: string(replay.ReasonKey), Detail: clipped}}},
		{Index: 10, Lacking: []int{}, Outcomes: []Outcome{}}}
	if d := cmp.Diff(want, b.t.Events); d != "" || b.t.EventCount != 8 {
		t.Errorf("%d events: %s", b.t.EventCount, d)
	}
}

// TestMarks: the report's moments are in index order, those of one index in the report's, with texts of bounded length.
// The report keeps its own.
func TestMarks(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	in := []Moment{{Index: 9, What: "b"}, {Index: 9, What: "a"}, {Index: 3, What: long}}
	b := &builder{in: Input{Marks: in}, t: &Timeline{}}
	b.marks()
	want := []Moment{{Index: 3, What: long[:maxText] + "…"}, {Index: 9, What: "b"}, {Index: 9, What: "a"}}
	if d := cmp.Diff(want, b.t.Marks); d != "" || in[2].What != long {
		t.Errorf("%s, the report's: %+v", d, in)
	}
}

// TestWholeTimeline: what bounds the log, its gaps and the notes are those of the input.
func TestWholeTimeline(t *testing.T) {
	in := replayed(t, "hands a1 a2", "elect", "puts 3", "close node1", "puts 2", "commit")
	in.Replay.Gaps = []replay.Gap{{From: 3, To: 4}}
	in.Replay.Survey.MarksLeftOut = 6
	in.Notes = []Note{{Member: "node1", Line: "x"}}
	in.Marks = []Moment{{Index: 2}}
	tl := built(t, in, Options{})
	if tl.First != 1 || tl.Last != in.Replay.Last || tl.Commit != in.Replay.Commit || tl.Commit == 0 ||
		!slices.Equal(tl.Gaps, []Span{{From: 3, To: 4}}) || tl.MarksLeftOut != 6 || len(tl.Notes) != 1 ||
		len(tl.Marks) != 1 || len(tl.Terms) == 0 || len(tl.Lanes) != 2 || len(tl.History) != 2 {
		t.Errorf("%+v", tl)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if tl, err := Build(ctx, in, Options{}); tl != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %+v, %v", tl, err)
	}
}

// TestLanes: a lane has the indexes of its member and the bounds of its log and of its replay; a database alone has no
// log, and says why nothing was replayed.
func TestLanes(t *testing.T) {
	in := replayed(t, "hands a1 a2 a3", "elect", "puts 4", "commit", "close node2", "puts 2", "unapplied node3", "commit",
		"db node2")
	at := slices.IndexFunc(in.Members, func(m *evidence.Member) bool { return !m.HasWAL() })
	if at < 0 {
		t.Fatal("no source is a database alone")
	}
	in.Replay.Members[at].Checked, in.Replay.Members[at].Why = false, strings.Repeat("w", maxText+1)
	in.Replay.Members[0].Surplus = 3
	in.Forgot = make([]Span, len(in.Members)-1)
	in.Forgot[0] = Span{From: 5, To: 6}
	tl := built(t, in, Options{})
	for i, m := range in.Members {
		l, r := &tl.Lanes[i], in.Replay.Members[i]
		if l.Member != m.Label() || l.ID != m.MemberID || l.Commit != m.Commit || l.Applied != m.AppliedMin ||
			l.AppliedMax != m.AppliedMax || l.JudgedFrom != r.From || l.JudgedTo != r.To || l.Lacks != r.Lacks ||
			l.Surplus != r.Surplus ||
			len(l.Curve) != PerPoint*len(r.Curve.Points) || (l.AuthExpected != nil) != r.AuthKnown {
			t.Errorf("lane %+v of %+v", l, r)
		}
		if (l.LogFrom == 1 && l.LogTo > 0) != m.HasWAL() || (l.Why == "") != r.Checked {
			t.Errorf("%s: log %d to %d, why %q", l.Member, l.LogFrom, l.LogTo, l.Why)
		}
		if wants := i == 0; (len(l.Damaged) == 1) != wants {
			t.Errorf("%s: %+v", l.Member, l.Damaged)
		}
	}
	if why := tl.Lanes[at].Why; why != strings.Repeat("w", maxText)+"…" {
		t.Errorf("why: %q", why)
	}
	last := tl.Lanes[len(in.Members)-1]
	if last.Lacks != 1 && tl.Lanes[2].Lacks != 1 {
		t.Errorf("no lane lacks the put: %+v", tl.Lanes)
	}
}
