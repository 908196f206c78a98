package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// threeMembers are members with databases whose keys were compared.
func threeMembers(equal release.Answer) *Input {
	in := &Input{MaxRows: 20, Replay: &replay.Result{Survey: &replay.Survey{}}}
	for i, name := range []string{"n1", "n2", "n3"} {
		m := withDB(withLog(member(name), 20), 20)
		m.MemberID = dumplog.ID(i + 1)
		in.Members = append(in.Members, m)
		in.Replay.Members = append(in.Replay.Members, &replay.MemberResult{Member: m, Checked: true})
	}
	in.Diff = &diff.Result{Members: in.Members, Buckets: []diff.Bucket{{Name: "key", Equal: equal}}}
	return in
}

// TestCorruptAlarms: a CORRUPT alarm is true if the comparison finds the same member wrong.
func TestCorruptAlarms(t *testing.T) {
	for name, c := range map[string]struct {
		equal   release.Answer
		change  func(in *Input)
		outcome Outcome
		kind    Kind
		reason  string
	}{
		"no alarm":            {release.Yes, func(in *Input) { in.Members[0].DB.Alarms[0].Type = 1 }, Holds, "", ""},
		"unfounded":           {release.Yes, func(*Input) {}, Violated, KindCorruptAlarmUnfounded, ""},
		"true":                {release.No, func(in *Input) { in.Replay.Members[1].Lacks = 1 }, Holds, "", ""},
		"true, too many":      {release.No, func(in *Input) { in.Replay.Members[1].Surplus = 1 }, Holds, "", ""},
		"true, extra records": {release.No, func(in *Input) { in.Replay.Members[1].Extra = []int64{4} }, Holds, "", ""},
		"names another": {release.No, func(in *Input) {
			in.Replay.Members[2].Lacks = 1
		}, Violated, KindCorruptAlarmNamesOther,
			""},
		"names no member": {release.No, func(in *Input) {
			in.Replay.Members[2].Lacks, in.Members[0].DB.Alarms[0].MemberID = 1, 0
		}, Holds, "", ""},
		"not replayed": {release.No, func(in *Input) {
			in.Replay.Members[2].Lacks, in.Replay.Members[2].Checked = 1, false
		}, "", "", "the keys differ, and the log does not tell which member is wrong"},
		"not compared": {release.No, func(in *Input) {
			in.Replay.Members[2].Lacks, in.Diff.NotCompared = 1, map[int]string{2: "damaged"}
		}, "", "", "the keys differ, and the log does not tell which member is wrong"},
		"keys unknown": {release.Unknown, func(*Input) {}, "", "", "the keys of the members could not be compared"},
		"no keys": {release.Yes, func(in *Input) { in.Diff.Buckets = nil }, "", "",
			"the keys of the members could not be compared"},
		"no diff": {release.Yes, func(in *Input) { in.Diff = nil }, "", "",
			"needs the logs and databases of two members or more"},
		"no replay": {release.Yes, func(in *Input) { in.Replay = nil }, "", "",
			"needs the logs and databases of two members or more"},
		"records differ": {release.Yes, func(in *Input) {
			in.Diff.Records = differing(recordRow("a", "b", "a"))
			in.Replay.Events = []*replay.Event{contradiction(1)}
		}, Holds, "", ""},
		"records differ elsewhere": {release.Yes, func(in *Input) {
			in.Diff.Records = differing(recordRow("a", "a", "b"))
			in.Replay.Events = []*replay.Event{contradiction(2)}
		}, Violated, KindCorruptAlarmNamesOther, ""},
	} {
		in := threeMembers(c.equal)
		in.Members[0].DB.Alarms = []dumpdb.Alarm{{MemberID: 2, Type: alarmCorrupt}}
		c.change(in)
		r := runCorruptAlarmTrue(in)
		if r.Outcome != c.outcome || r.Reason != c.reason || (len(r.Findings) > 0) != (c.kind != "") ||
			c.kind != "" && (r.Findings[0].Kind != c.kind || !slices.Equal(r.Findings[0].Members, []string{"n1"})) {
			t.Errorf("%s: %+v", name, r)
		}
		title := "the CORRUPT alarm names n2, the comparison n3"
		if c.kind == KindCorruptAlarmNamesOther && r.Findings[0].Title != title {
			t.Errorf("%s: %s", name, r.Findings[0].Title)
		}
	}
}

func differing(row diff.RecordRow) *diff.Records {
	return &diff.Records{Equal: release.No, Differ: 1, Rows: []diff.RecordRow{row}}
}

// recordRow is a record at revision 5 that members hold with this content; "" is none.
func recordRow(contents ...string) diff.RecordRow {
	row := diff.RecordRow{Rev: dumpdb.Rev{Main: 5}, Key: []byte("k")}
	for i, s := range contents {
		row.At = append(row.At, i)
		var c *diff.RecordCell
		if s != "" {
			c = &diff.RecordCell{Sum: s, Text: "key k " + s, Content: "content " + s}
		}
		row.Cells = append(row.Cells, c)
	}
	return row
}

// contradiction is an entry that wrote revision 5, which the database of one of three members contradicts.
func contradiction(pos int) *replay.Event {
	e := &replay.Event{Index: 9, Term: 2, Kind: dumplog.KindPut}
	for i := range 3 {
		o := replay.Outcome{State: replay.Applied, Rev: 5, Sig: 1}
		if i == pos {
			o.State = replay.Contradicted
		}
		e.Outcomes = append(e.Outcomes, o)
	}
	return e
}

// beforeLast gives the first member another record at a revision before its last transaction, and returns that.
func beforeLast(t *testing.T, in *Input, rev dumpdb.Rev) *diff.RecordCell {
	t.Helper()
	before := withDB(member("n1"), 20)
	before.DB.Handle = keyBucket(t, record{rev.Main, rev.Sub, "k", false})
	in.earlier.before = map[*evidence.Member]*evidence.Member{in.Members[0]: before, in.Members[1]: nil,
		in.Members[2]: nil}
	c := in.earlier.recordBefore(in.Context(), in.Members[0], rev)
	if c == nil {
		t.Fatal("the record was not read")
	}
	c.Content = "content a"
	return c
}

// TestRecordProofs: what proves the record of the first member wrong, and who then holds the right one.
func TestRecordProofs(t *testing.T) {
	type change = func(in *Input, row *diff.RecordRow)
	// violates gives members a record that their own history rules out.
	violates := func(rule string, sub int64, at ...int) change {
		return func(in *Input, _ *diff.RecordRow) {
			for _, pos := range at {
				in.Members[pos].DB.KV.Violations = []dumpdb.Violation{{Rev: dumpdb.Rev{Main: 5, Sub: sub}, Rule: rule,
					Expected: "a lower version"}}
			}
		}
	}
	history := func(at ...int) change { return violates("order", 0, at...) }
	log := func(in *Input, _ *diff.RecordRow) { in.Replay.Events = []*replay.Event{contradiction(0)} }
	const own, entry = "its own history", "entry 9 wrote another record"
	for name, c := range map[string]struct {
		row      diff.RecordRow
		change   change
		open     bool
		heldBy   []int
		expected string
		why      string
	}{
		"nothing shows it": {recordRow("x", "a", "a"), history(), true, nil, "", ""},
		"all equal":        {recordRow("a", "a", "a"), history(0), false, nil, "", ""},
		"not compared": {recordRow("x", "a", "a"), func(in *Input, row *diff.RecordRow) {
			history(0)(in, row)
			row.At = []int{1, 2}
		}, false, nil, "", ""},
		"its own history":   {recordRow("x", "a", "a"), history(0), false, []int{1, 2}, "content a", own},
		"others differ":     {recordRow("x", "a", "b"), history(0), false, nil, "a lower version", own},
		"another accused":   {recordRow("x", "a", "b"), history(0, 2), false, []int{1}, "content a", own},
		"only others":       {recordRow("x", "a", "a"), history(1, 2), false, nil, "", ""},
		"one of the others": {recordRow("x", "a", "a"), history(1), true, nil, "", ""},
		"a rule of leases":  {recordRow("x", "a", "a"), violates(dumpdb.RuleLease, 0, 0), true, nil, "", ""},
		"another record":    {recordRow("x", "a", "a"), violates("order", 1, 0), true, nil, "", ""},
		"the log":           {recordRow("x", "a", "a"), log, false, []int{1, 2}, "content a", entry},
		"the log, absent":   {recordRow("", "a", "a"), log, false, []int{1, 2}, "content a", entry},
		"none as written": {recordRow("x", "a", "a"), func(in *Input, _ *diff.RecordRow) {
			e := contradiction(0)
			e.Outcomes[1].Rev, e.Outcomes[2].State = 6, replay.NoEffect
			in.Replay.Events = []*replay.Event{e}
		}, false, nil, "what the entry writes", entry},
		"none, of a transaction": {recordRow("x", "a", "a"), func(in *Input, _ *diff.RecordRow) {
			e := contradiction(0)
			e.Outcomes[1].Rev, e.Outcomes[2].State, e.Kind = 6, replay.NoEffect, dumplog.KindTxn
			in.Replay.Events = []*replay.Event{e}
		}, true, nil, "", ""},
		"absent like another": {recordRow("", "", "a"), history(0), false, []int{2}, "content a", own},
		"equal in its digest": {recordRow("x", "x", "a"), func(in *Input, row *diff.RecordRow) {
			history(0)(in, row)
			row.Cells[1].Text = "another text"
		}, false, nil, "a lower version", own},
		"its last transaction": {recordRow("x", "a", "b"), func(in *Input, row *diff.RecordRow) {
			row.Cells[1] = beforeLast(t, in, row.Rev)
		}, false, []int{1}, "content a", "its last"},
		"like one as written": {recordRow("a", "a", "b"), func(in *Input, _ *diff.RecordRow) {
			e := contradiction(0)
			e.Outcomes[2].State = replay.Contradicted
			in.Replay.Events = []*replay.Event{e}
		}, false, nil, "", ""},
	} {
		in := threeMembers(release.Yes)
		c.change(in, &c.row)
		wrong, open := in.RecordProofs(0).Judge(&c.row)
		if open != c.open || (wrong != nil) != (c.why != "") {
			t.Errorf("%s: %+v, open %t", name, wrong, open)
			continue
		}
		if wrong == nil {
			continue
		}
		kept := "content x"
		if c.row.Cells[0] == nil {
			kept = "absent"
		}
		if !strings.HasPrefix(wrong.Why, c.why) || wrong.Expected != c.expected ||
			!slices.Equal(wrong.HeldBy, c.heldBy) || wrong.Kept != kept ||
			(wrong.Event != nil) != strings.HasPrefix(c.why, "entry") || wrong.Row != &c.row {
			t.Errorf("%s: %+v", name, wrong)
		}
	}
}

// TestRecordSuspects: the revisions of a member that an entry, or its own history, contradicts.
func TestRecordSuspects(t *testing.T) {
	in := threeMembers(release.Yes)
	other := contradiction(1)
	other.Outcomes[1].Rev = 8
	in.Replay.Events = []*replay.Event{contradiction(0), other}
	in.Members[0].DB.KV.Violations = []dumpdb.Violation{{Rev: dumpdb.Rev{Main: 6}, Rule: dumpdb.RuleLease},
		{Rev: dumpdb.Rev{Main: 7}, Rule: "order"}}
	for pos, want := range [][]int64{{5, 7}, {8}, nil} {
		if got := in.RecordProofs(pos).Suspects(); !slices.Equal(got, want) {
			t.Errorf("member %d: %v, want %v", pos, got, want)
		}
	}
	in.Replay = nil
	if got := in.RecordProofs(0).Suspects(); !slices.Equal(got, []int64{7}) {
		t.Errorf("without a replay: %v", got)
	}
	in.Members[0].DB.KV = nil
	if p := in.RecordProofs(0); len(p.Suspects()) > 0 || p.KnowsBefore() {
		t.Error("without a database that was read")
	}
}

// TestCompactionAgainstNospace: the compaction that is advised is at the newest record, not at a mark above it, which
// may be wrong.
func TestCompactionAgainstNospace(t *testing.T) {
	a, b := withDB(member("n1"), 9), withDB(member("n2"), 9)
	a.DB.KV.LastRev, a.DB.KV.CurrentRev = dumpdb.Rev{Main: 7}, 1<<33
	b.DB.KV.LastRev, b.DB.KV.CurrentRev = dumpdb.Rev{Main: 8}, 8
	for want, ss := range map[string]Sources{"etcdctl compact 8": {a, b}, "etcdctl compact 7": {a},
		"etcdctl compact REVISION": {withDB(member("n3"), 9)}} {
		f := alarmFinding(ss, &raisedAlarm{members: ss.labels(), Alarm: dumpdb.Alarm{Type: 1}})
		if got := f.Remedy[0].Command.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
