package verdict

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// rankingOf is a ranking of members n1, n2 and so on, with a replay that judged nothing yet.
func rankingOf(kinds ...evidence.Kind) *ranking {
	ms := sources(kinds...)
	rp := &replay.Result{Last: 9}
	for _, m := range ms {
		rp.Members = append(rp.Members, &replay.MemberResult{Member: m})
	}
	return &ranking{Input: &Input{Input: &check.Input{Members: ms, Replay: rp}}}
}

// TestLostInWords: writes, entries after the end of a source, wrong records and awaited entries are each said once.
func TestLostInWords(t *testing.T) {
	wrong := func(n, ofEntries int) LostRecords { return LostRecords{Count: n, OfEntries: ofEntries} }
	for want, l := range map[string]Lost{
		"no committed write":                                           {},
		"1 committed write on 1 key":                                   {CommittedEntries: 1, Keys: 1},
		"3 committed writes on 2 keys":                                 {CommittedEntries: 3, Keys: 2},
		"0 committed writes on 2 keys":                                 {Keys: 2},
		"the last 4 committed entries":                                 {CommittedEntries: 4, AfterEnd: 4},
		"the last 1 committed entry":                                   {CommittedEntries: 1, AfterEnd: 1},
		"2 committed writes on 1 key, and the last 1 committed entry":  {CommittedEntries: 3, AfterEnd: 1, Keys: 1},
		"1 committed write on 1 key, and the last 2 committed entries": {CommittedEntries: 3, AfterEnd: 2, Keys: 1},
		"the right content of 1 record that is proven wrong on it":     {Records: wrong(1, 0)},
		"the right content of 2 records that are proven wrong on it":   {Records: wrong(3, 1)},
	} {
		if got := l.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	ofEntries := Lost{CommittedEntries: 3, Keys: 2, Records: wrong(2, 2)}
	if got := ofEntries.String(); got != "3 committed writes on 2 keys" {
		t.Errorf("records of lost entries are lost with them: %q", got)
	}
	both := Lost{CommittedEntries: 1, Keys: 1, Records: wrong(2, 1), Awaited: 2}
	const want = "1 committed write on 1 key, and the right content of 1 record that is proven wrong on it, if it " +
		"first gets the last 2 committed entries from another member"
	if got := both.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, l := range []Lost{{CommittedEntries: 1}, {Keys: 1}, {Records: wrong(1, 1)}} {
		if l.None() {
			t.Errorf("%+v is called nothing", l)
		}
	}
	if l := (Lost{Awaited: 1}); !l.None() || l.Condition() == "" || (&Lost{}).Condition() != "" {
		t.Error("entries that are awaited are no loss, but a condition")
	}
}

// TestFirstLostRecords shortens without altering the original.
func TestFirstLostRecords(t *testing.T) {
	r := LostRecords{Count: 3, Rows: []LostRecord{{HeldBy: []string{"n2"}}, {}, {HeldBy: []string{"n2", "n3"}}}}
	short := r.First(1)
	if len(short.Rows) != 1 {
		t.Errorf("%d rows, want 1", len(short.Rows))
	}
	short.Rows = append(short.Rows, LostRecord{Bucket: "x"})
	if len(r.First(9).Rows) != 3 || r.Rows[1].Bucket != "" || r.First(1).Count != 3 {
		t.Errorf("%+v", r)
	}
}

// TestLostAsJSON has the commands as text and as arguments, and leaves out those that there are not.
func TestLostAsJSON(t *testing.T) {
	b, err := json.Marshal(Lost{Command: shell.Format("a {}", "x y"), Mend: shell.Format("b")})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"command":"a 'x y'"`, `"commandArgs":["a","x y"]`, `"mend":"b"`, `"mendArgs":["b"]`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	b, err = json.Marshal(Lost{})
	if err != nil || strings.Contains(string(b), "ommand") || strings.Contains(string(b), "mend") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestLostEntries: what the kept member lacks and another holds, or the log requires, is lost; each key counts once.
func TestLostEntries(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
	outcomes := func(first replay.Outcome) []replay.Outcome { return []replay.Outcome{first, {}} }
	rk.Replay.Events = []*replay.Event{
		{Index: 3, Term: 2, Keys: []string{"a", "b"}, Lacking: []int{0}, Holding: []int{1},
			Outcomes: outcomes(replay.Outcome{}), Proposer: 0xa2, What: "put"},
		{Index: 4, Keys: []string{"z"}, Lacking: []int{1}, Holding: []int{0}, Outcomes: outcomes(replay.Outcome{})},
		{Index: 5, Keys: []string{"z"}, Lacking: []int{0}, Outcomes: outcomes(replay.Outcome{})},
		{Index: 6, Keys: []string{"b"}, Lacking: []int{0}, Outcomes: outcomes(replay.Outcome{State: replay.Missing})},
		{Index: 7, Keys: []string{"c"}, Lacking: []int{0}, Outcomes: outcomes(replay.Outcome{Wrongly: true})},
		{Index: 8, Keys: []string{"c"}, Lacking: []int{0},
			Outcomes: outcomes(replay.Outcome{State: replay.Contradicted})},
	}
	rk.Replay.EventCount = len(rk.Replay.Events)
	b := &Best{Members: []string{"n1"}}
	rk.lost(b, "n1", 0)
	l := &b.Lost
	same := func(k check.Bytes, s string) bool { return string(k) == s }
	if l.CommittedEntries != 4 || l.Keys != 3 || len(l.Entries) != 4 ||
		!slices.EqualFunc(l.KeyNames, []string{"a", "b", "c"}, same) ||
		!strings.Contains(l.Command.String(), "dumplog n1 --index 3..8 ") {
		t.Errorf("%+v", l)
	}
	first := l.Entries[0]
	if first.Index != 3 || first.Term != 2 || first.What != "put" || first.ProposedBy != "n2" ||
		!slices.Equal(first.HeldBy, []string{"n2"}) || l.Entries[1].ProposedBy != "" || len(l.Entries[1].HeldBy) != 0 {
		t.Errorf("%+v", l.Entries)
	}
	if n, proposers := l.Nowhere([]string{"n1"}); n != 3 || len(proposers) != 0 {
		t.Errorf("%d entries are nowhere, of %v", n, proposers)
	}
	l.Entries[2].ProposedBy, l.Entries[3].ProposedBy = "n9", "n9"
	if n, proposers := l.Nowhere([]string{"n1"}); n != 3 || !slices.Equal(proposers, []string{"n9"}) {
		t.Errorf("%d entries are nowhere, of %v", n, proposers)
	}

	// More events than are listed: the member's own count, and its last judged entry.
	rk.Replay.EventCount++
	rk.Replay.Members[0].Lacks, rk.Replay.Members[0].To = 40, 90
	b = &Best{Members: []string{"n1"}}
	rk.lost(b, "n1", 0)
	if b.Lost.CommittedEntries != 40 || !strings.Contains(b.Lost.Command.String(), " 3..90 ") {
		t.Errorf("%+v", b.Lost)
	}
	b = &Best{}
	if rk.lost(b, "n1", 0); b.Lost.CommittedEntries != 0 || b.Lost.KeyNames == nil {
		t.Errorf("nobody is kept: %+v", b.Lost)
	}
	rk.Replay.Events[0].Holding, rk.Replay.Events = nil, rk.Replay.Events[:1]
	b = &Best{Members: []string{"n1"}}
	if rk.lost(b, "n1", 0); !b.Lost.Command.IsZero() {
		t.Errorf("a command for nothing: %s", b.Lost.Command)
	}
}

// TestLostAbove: entries above a source are awaited if others can supply them; else they are lost, and the command
// shows them in a log that reaches from the first lost entry to the last.
func TestLostAbove(t *testing.T) {
	rk := rankingOf(evidence.KindBackup, evidence.KindDataDir, evidence.KindDataDir)
	rk.Members[0].DB = &evidence.DB{}
	rk.Members[0].DB.Meta.ConsistentIndex = new(uint64(5))
	lists(rk.Members[1], 7, evidence.Membership{})
	lists(rk.Members[2], 8, evidence.Membership{})
	of := func(s standing, b Best) Lost {
		b.Members = []string{"n1"}
		rk.lostAbove(&b, s)
		return b.Lost
	}
	if l := of(standing{behind: 3}, Best{}); l.Awaited != 3 || l.CommittedEntries != 0 || !l.Command.IsZero() {
		t.Errorf("awaited: %+v", l)
	}
	if l := of(standing{cut: true}, Best{}); l.AfterEnd != 0 || l.Awaited != 0 {
		t.Errorf("nothing is above: %+v", l)
	}
	if l := of(standing{behind: 3, cut: true}, Best{}); l.AfterEnd != 3 || l.CommittedEntries != 3 ||
		!strings.Contains(l.Command.String(), "dumplog n3 --index 6..8 ") {
		t.Errorf("lost: %+v", l)
	}
	one := Best{Lost: Lost{CommittedEntries: 1, Entries: []LostEntry{{Index: 4}}}}
	if l := of(standing{behind: 2, cut: true}, one); l.CommittedEntries != 3 || !strings.Contains(l.Command.String(), "dumplog n2 --index 4..7 ") {
		t.Errorf("lost in the middle and at the end: %+v", l)
	}
	rk.Members[1].WAL.Summary.FirstIndex = 6
	if l := of(standing{behind: 2, cut: true}, Best{}); !strings.Contains(l.Command.String(), "dumplog n2 ") {
		t.Errorf("a log that begins there is not shown: %s", l.Command)
	}
	rk.Members[1].WAL.Summary.FirstIndex = 7
	if l := of(standing{behind: 2, cut: true}, Best{}); !strings.Contains(l.Command.String(), "dumplog n3 ") {
		t.Errorf("a purged log is shown: %s", l.Command)
	}
}

// TestRowOfMember: every reason for a place is said in numbers, and only if there is one.
func TestRowOfMember(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member, x *replay.MemberResult, s *standing)
		want   []string
	}{
		"nothing is lacking": {nil, []string{"lacks no committed write that is known, up to entry 9"}},
		"an earlier end": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) { x.To = 4 },
			[]string{"lacks no committed write that is known, up to entry 4"}},
		"pages": {func(m *evidence.Member, _ *replay.MemberResult, _ *standing) { m.DB.KVDamaged = true },
			[]string{"part of its keys cannot be read"}},
		"lacks": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) { x.Lacks = 2 },
			[]string{"missing 2 committed writes"}},
		"lacks what was acknowledged": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) {
			x.Lacks, x.LacksAcked = 2, 1
		}, []string{"missing 2 committed writes (1 of them acknowledged by their proposer)"}},
		"too many": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) { x.Surplus = 1 },
			[]string{"holds 1 write too many"}},
		"lacks and too many": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) { x.Lacks, x.Surplus = 1, 2 },
			[]string{"missing 1 committed write", "holds 2 writes too many"}},
		"too many, and no write of another": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) {
			x.Surplus, x.Counts[replay.Missing] = 1, 1
		}, []string{"holds 1 write too many"}},
		"alone": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) { x.Lacks, x.Unique = 1, 1 },
			[]string{"missing 1 committed write", "is the only one that holds 1 committed write"}},
		"not replayed": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) { x.Checked, x.Why = false, "no log" },
			[]string{"not replayed: no log"}},
		"lags": {func(_ *evidence.Member, x *replay.MemberResult, s *standing) { x.Lacks, s.behind = 1, 3 },
			[]string{"missing 1 committed write", "lags by 3 committed entries (log ends at 6, commit 12)"}},
		"everything of its place": {func(_ *evidence.Member, x *replay.MemberResult, s *standing) {
			x.Checked, s.minority, s.pending, s.damage, s.usable = false, 1, 1, 2, false
			s.blamed = []*check.Finding{{ID: "D02-1"}, {ID: "D03-1"}}
		}, []string{"differs from the majority in 1 place that the log does not decide", "a compaction is unfinished",
			"2 damaged places", "named by D02-1, D03-1", "cannot serve in its current state"}},
		"its state": {func(m *evidence.Member, x *replay.MemberResult, _ *standing) {
			x.Lacks, x.AuthKnown, x.Unexplained, x.AuthExpected = 1, true, 1, 7
			m.DB.Auth.Revision = 8
			x.StateDiffs, x.Extra = make([]replay.StateDiff, 2), []int64{5}
			x.Counts[replay.Missing], x.Counts[replay.Contradicted] = 4, 1
			x.Reruns, x.Ahead = []replay.Stretch{{From: 2, To: 3}}, &replay.Stretch{From: 6, To: 8}
		}, []string{"missing 1 committed write", "its auth revision is 8, the log gives 7",
			"2 rows of its small buckets contradict the log", "holds other records than 1 entry wrote",
			"holds 1 revision that no entry explains", "holds the effects of entries 2..3 twice",
			"holds the effects of entries 6..8 above its consistent index"}},
		"missing, and no write of it": {func(_ *evidence.Member, x *replay.MemberResult, _ *standing) {
			x.Counts[replay.Missing] = 1
		}, []string{"lacks no committed write that is known, up to entry 9", "has applied 1 entry without an effect"}},
	} {
		rk := rankingOf(evidence.KindDataDir)
		m, x, s := rk.Members[0], rk.Replay.Members[0], standing{usable: true}
		lists(m, 6, evidence.Membership{})
		m.DB = &evidence.DB{}
		x.Checked, x.To = true, 20
		if c.change != nil {
			c.change(m, x, &s)
		}
		row := rk.rankRow(s, 12, false)
		if !slices.Equal(row.Reasons, c.want) || row.Usable != s.usable || row.Behind != int(s.behind) ||
			row.Lacks.CommittedEntries != x.Lacks && x.Checked || row.Surplus != x.Surplus || row.Member != "n1" {
			t.Errorf("%s: %+v, want %q", name, row, c.want)
		}
	}
	rk := rankingOf(evidence.KindDataDir)
	rk.Replay.Members[0].Checked, rk.Replay.Members[0].To = true, 9
	row := rk.rankRow(standing{}, 9, true)
	if !row.HoldsAll || row.Reasons[0] != "holds every committed write up to entry 9" {
		t.Errorf("%+v", row)
	}
	rk.Replay.Members[0].To = 10
	row = rk.rankRow(standing{}, 9, true)
	if !strings.HasPrefix(row.Reasons[0], "lacks no committed write that is known") {
		t.Errorf("above the last entry of all logs nothing is proven: %+v", row)
	}
}

// TestEndLost: a torn copy of one member may have acknowledged more, and so may a member that lost more than its
// database.
func TestEndLost(t *testing.T) {
	for name, c := range map[string]struct {
		f    check.Finding
		want bool
	}{
		"committed below a quorum": {check.Finding{Check: check.R07, Severity: check.Info}, true},
		"one torn copy": {check.Finding{Class: check.ClassTornCopy, Severity: check.Error, Members: []string{"n1"}},
			true},
		"copies of two": {check.Finding{Class: check.ClassTornCopy, Severity: check.Error,
			Members: []string{"n1", "n2"}}, false},
		"a warning": {check.Finding{Class: check.ClassTornCopy, Severity: check.Warning, Members: []string{"n1"}}, false},
		"lost data": {check.Finding{Class: check.ClassMemberLostData, Severity: check.Critical,
			Members: []string{"n1", "n2"}}, true},
		"lost its database": {check.Finding{Class: check.ClassMemberLostData, Severity: check.Error,
			Kind: check.KindDBRemoved}, false},
		"other damage": {check.Finding{Class: check.ClassDBDamage, Severity: check.Error, Members: []string{"n1"}}, false},
	} {
		if got := endLost(&c.f); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestMendOfRecords: the command names every other source that has a database in files, and there is none where nobody
// holds a right record, or where the member is not in files.
func TestMendOfRecords(t *testing.T) {
	build := func(kinds ...evidence.Kind) *ranking {
		rk := rankingOf(kinds...)
		for _, m := range rk.Members {
			m.DB = &evidence.DB{Handle: &dumpdb.DB{}}
		}
		return rk
	}
	held := LostRecords{Count: 1, Mendable: 1, Rows: []LostRecord{{HeldBy: []string{"n2"}}}}
	rk := build(evidence.KindDB, evidence.KindDataDir, evidence.KindEndpoint, evidence.KindBackup, evidence.KindDataDir)
	rk.Members[4].DB = nil
	l := &Lost{Records: held}
	rk.mendRecords(l, 0)
	want := "etcd-medic repair db n1 --rebuild --take-proven --with n2 --with n4 -o n1-mended"
	if got := l.Mend.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !l.MendedWith("n2") || !l.MendedWith("n4") || l.MendedWith("n1") || l.MendedWith("n3") {
		t.Errorf("taken from %v", l.with)
	}
	for name, c := range map[string]struct {
		kind    evidence.Kind
		records LostRecords
	}{
		"held by none": {evidence.KindDataDir, LostRecords{Count: 1, Rows: []LostRecord{{}}}},
		"endpoint":     {evidence.KindEndpoint, held},
	} {
		l = &Lost{Records: c.records}
		if build(c.kind, evidence.KindDataDir).mendRecords(l, 0); !l.Mend.IsZero() {
			t.Errorf("%s: %s", name, l.Mend)
		}
	}
}

// TestHistoryInWords: what the members of one history hold, and when it began, as far as that is known.
func TestHistoryInWords(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
	for _, m := range rk.Members {
		lists(m, 7, evidence.Membership{})
		m.WAL.Summary.LastTerm = 3
	}
	h := sharedHistory{members: []int{0, 1}}
	if got, want := rk.separateHistories().describe(h), "n1, n2: log to 3/7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rk.Members[0].DB = &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{CurrentRev: 12, LiveKeys: 1}}
	h.first, h.begun = 5, time.Date(2024, 5, 6, 7, 8, 9, 0, time.FixedZone("", 3600))
	want := "n1, n2: log to 3/7, revision 12, 1 key, first process began 2024-05-06T06:08:09Z"
	if got := rk.separateHistories().describe(h); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKeysNotCompared: members whose keys were not compared are named with the reason, unless they were left out of it.
func TestKeysNotCompared(t *testing.T) {
	ms := sources(make([]evidence.Kind, 3)...)
	hl := &health{Input: &Input{Input: &check.Input{Members: ms}}}
	if hl.apart() != "" || hl.comparedAt() != 0 {
		t.Error("nothing was compared")
	}
	hl.Diff = &diff.Result{Members: ms, Revs: []int64{4, 9, 0},
		KeysNotCompared: map[int]string{0: "n1 why", 1: "n2 why", 2: "n3 why"}, NotCompared: map[int]string{1: "damaged"}}
	if got := hl.apart(); got != "n1 why; n3 why" || hl.comparedAt() != 9 {
		t.Errorf("%q at %d", got, hl.comparedAt())
	}
}

// TestSuspectRevisions: of the live keys that differ those are suspect that all members wrote at one revision.
func TestSuspectRevisions(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
	row := func(cells ...*diff.Cell) diff.Row { return diff.Row{Key: []byte("k"), Cells: cells} }
	at := func(mod int64, sum string) *diff.Cell { return &diff.Cell{Mod: mod, ValueDigest: sum} }
	rows := []diff.Row{row(at(7, "a"), at(7, "b")), row(at(5, "a"), at(6, "b")), row(nil, at(4, "b")),
		row(at(3, "a"), at(3, "b")), row(at(7, "c"), at(7, "d"))}
	rk.Diff = &diff.Result{Members: rk.Members, Buckets: []diff.Bucket{{Name: "key", Equal: release.No, Rows: rows}}}
	if got := rk.suspectRevisions(0, rk.RecordProofs(0)); !slices.Equal(got, []int64{3, 7}) {
		t.Errorf("%v", got)
	}
	rk.Diff.Buckets[0].Equal = release.Yes
	if got := rk.suspectRevisions(0, rk.RecordProofs(0)); len(got) != 0 {
		t.Errorf("equal keys: %v", got)
	}
}

// TestStartMendsAll: a start is all that is needed only if every error is one that a start mends, and every data dir
// starts and has something to mend.
func TestStartMendsAll(t *testing.T) {
	torn := evidence.Facts{Name: "n1", WAL: &evidence.WALFacts{FirstIndex: 1, LastIndex: 4,
		Damage: []evidence.DamageFacts{{OnStart: dumplog.StartCuts, LostFrom: 5, LostTo: 5}}}}
	purged := evidence.Facts{Name: "n1", WAL: &evidence.WALFacts{FirstIndex: 3, LastIndex: 4}}
	for name, c := range map[string]struct {
		facts    evidence.Facts
		kind     evidence.Kind
		findings []check.Finding
		done     bool
	}{
		"torn end":    {torn, evidence.KindDataDir, nil, true},
		"no start":    {purged, evidence.KindDataDir, nil, false},
		"no data dir": {torn, evidence.KindDB, nil, false},
		"mended by it": {torn, evidence.KindDataDir, []check.Finding{{Check: check.W01, Class: check.ClassWALDamage,
			Severity: check.Error}}, check.W01.MendedByStart()},
		"keys differ too": {torn, evidence.KindDataDir, []check.Finding{{Check: check.K01,
			Class: check.ClassDataDivergence, Severity: check.Error}}, false},
		"a warning about them": {torn, evidence.KindDataDir, []check.Finding{{Check: check.K01,
			Class: check.ClassDataDivergence, Severity: check.Warning}}, true},
	} {
		ms := sources(c.kind)
		ad := &advice{Input: &Input{Input: &check.Input{Members: ms}, Facts: []evidence.Facts{c.facts},
			Findings: c.findings}}
		var said []string
		if done := ad.nextMend(func(text string, _ shell.Command) { said = append(said, text) }); done != c.done {
			t.Errorf("%s: done %t, said %q", name, done, said)
		}
	}
}
