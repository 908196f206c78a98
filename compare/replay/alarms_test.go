package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// alarmRequest raises (1), clears (2) or queries (0) the NOSPACE alarm of a member.
func alarmRequest(action int32, member dumplog.ID) *dumplog.Request {
	return &dumplog.Request{Kind: dumplog.KindAlarm,
		Alarm: &dumplog.AlarmRequest{Action: action, MemberID: member, Alarm: apply.AlarmNoSpace}}
}

// surveyed is a survey that has seen requests at indexes.
func surveyed(at map[uint64]*dumplog.Request) *Survey {
	s := &Survey{state: newLastStates()}
	for _, index := range sortedIndexes(at) {
		s.noteState(index, at[index])
	}
	return s
}

func sortedIndexes(at map[uint64]*dumplog.Request) []uint64 {
	var out []uint64
	for i := range at {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// TestAlarmSpans: the log and the database tell at which entries an alarm was on, or may have been.
func TestAlarmSpans(t *testing.T) {
	raise, clearOne := alarmRequest(1, 1), alarmRequest(2, 1)
	const always = "0..18446744073709551615"
	for name, c := range map[string]struct {
		log       map[uint64]*dumplog.Request
		db        []dumpdb.Alarm
		first     uint64
		fromStart bool
		want      string
	}{
		"none":                    {},
		"queries":                 {log: map[uint64]*dumplog.Request{12: alarmRequest(0, 1)}},
		"one that no entry names": {db: []dumpdb.Alarm{{MemberID: 1, Type: 1}}, want: always},
		"one that was cleared":    {log: map[uint64]*dumplog.Request{12: clearOne}, want: "0..12"},
		"one that was raised": {log: map[uint64]*dumplog.Request{12: raise},
			db: []dumpdb.Alarm{{MemberID: 1, Type: 1}}, want: "0..12 13..18446744073709551615"},
		"raised in a whole log": {log: map[uint64]*dumplog.Request{12: raise, 13: clearOne}, fromStart: true,
			want: "13..13"},
		"of another member": {log: map[uint64]*dumplog.Request{12: raise, 13: clearOne,
			14: alarmRequest(2, 2)}, want: "0..12 13..13 14..14"},
		"raised twice": {log: map[uint64]*dumplog.Request{12: clearOne, 13: raise, 14: raise,
			15: clearOne}, want: "0..12 14..15"},
		"behind a gap": {log: map[uint64]*dumplog.Request{12: clearOne, 20: clearOne}, first: 15,
			want: "0..20"},
		"before the stretch of a member": {log: map[uint64]*dumplog.Request{12: clearOne}, first: 15},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlarmLog(surveyed(c.log), c.first, c.db)
			a.fromStart = c.fromStart
			s := &logView{alarmed: a.spans()}
			if got := strings.Trim(fmt.Sprint(s.alarmed), "[]"); got != c.want {
				t.Errorf("spans %s, want %s", got, c.want)
			}
			for _, g := range s.alarmed {
				if !s.mayBeAlarmed(g.From) || !s.mayBeAlarmed(g.To) {
					t.Errorf("an alarm may be on at the ends of %s", g)
				}
			}
			if s.mayBeAlarmed(16) != strings.Contains(c.want, "20") && c.want != always &&
				!strings.HasSuffix(c.want, "615") {
				t.Error("entry 16 is judged wrong")
			}
		})
	}
	s := &Survey{state: newLastStates()}
	for i := range uint64(maxAlarmChanges + 1) {
		s.noteState(i, alarmRequest(1+int32(i%2), 1))
	}
	if got := fmt.Sprint(newAlarmLog(s, 0, nil).spans()); got != "["+always+"]" {
		t.Errorf("a log that changes alarms too often: %s", got)
	}
}

// TestAlarmsOfAModel: where a model begins in the middle, alarms that an entry named before are known, the others from
// the first entry on that names them.
func TestAlarmsOfAModel(t *testing.T) {
	log := map[uint64]*dumplog.Request{12: alarmRequest(1, 1), 20: alarmRequest(2, 1), 30: alarmRequest(1, 2),
		31: alarmRequest(2, 2)}
	for base, want := range map[uint64]string{
		5:  "[] unsure true; 12: [1] unsure true; 20: [] unsure true; 30: [2] unsure false; 31: [] unsure false",
		15: "[1] unsure true; 20: [] unsure true; 30: [2] unsure false; 31: [] unsure false",
		25: "[] unsure true; 30: [2] unsure false; 31: [] unsure false",
		40: "[] unsure false",
	} {
		s := &subject{logView: &logView{m: &evidence.Member{}}, base: base, touched: map[string]bool{}}
		s.alarms = newAlarmLog(surveyed(log), 0, nil)
		s.setAlarms()
		say := func() string {
			var on []dumplog.ID
			for k := range s.Alarms {
				on = append(on, k.Member)
			}
			return strings.NewReplacer("0000000000000001", "1", "0000000000000002", "2").
				Replace(fmt.Sprintf("%v unsure %t", on, s.AlarmsUnsure))
		}
		got := say()
		for _, index := range sortedIndexes(log) {
			if index > base {
				s.alarm(&item{entry: dumplog.Entry{Index: index}, req: log[index]})
				got += fmt.Sprintf("; %d: %s", index, say())
			}
		}
		if got != want {
			t.Errorf("from %d: %s, want %s", base, got, want)
		}
	}
	s := &subject{logView: &logView{m: &evidence.Member{}}, base: 15, touched: map[string]bool{}}
	s.alarms = newAlarmLog(surveyed(log), 0, nil)
	s.alarms.unknown = true
	if s.setAlarms(); len(s.Alarms) > 0 || !s.AlarmsUnsure {
		t.Errorf("alarms that are not known: %v, unsure %t", s.Alarms, s.AlarmsUnsure)
	}
	s.alarm(&item{entry: dumplog.Entry{Index: 31}, req: log[31]})
	if s.openAlarms = nil; !s.AlarmsUnsure {
		t.Error("alarms that are not known are known after an entry about one")
	}
}

// TestWriteUnderNoAlarm: an entry that put keys shows that no alarm was on, unless later entries can have written all
// records from its own on.
func TestWriteUnderNoAlarm(t *testing.T) {
	noted := &writers{appliedRange: appliedRange{min: 20, until: 20}}
	for i := uint64(1); i <= 20; i++ {
		r := put("a", "1")
		if i == 10 || i == 18 {
			r = alarmRequest(1, 1)
		}
		noted.note(&item{entry: dumplog.Entry{Index: i}, req: r})
	}
	for name, c := range map[string]struct {
		index    uint64
		rev, cur int64
		state    State
		deletes  bool
		settled  bool
	}{
		"more revisions than later entries":  {index: 5, rev: 5, cur: 23, state: Applied, settled: true},
		"later entries may have written all": {index: 5, rev: 5, cur: 22, state: Applied},
		"no later entries":                   {index: 19, rev: 9, cur: 9, state: Applied, settled: true},
		"two later entries":                  {index: 17, rev: 9, cur: 13, state: Applied, settled: true},
		"two later entries, applied twice":   {index: 17, rev: 9, cur: 12, state: Applied},
		"deletes pass with a NOSPACE alarm":  {index: 5, rev: 5, cur: 23, state: Applied, deletes: true},
		"no effect":                          {index: 5, rev: 0, cur: 23, state: NoEffect},
		"records that are not its own":       {index: 5, rev: 5, cur: 23, state: Contradicted},
	} {
		t.Run(name, func(t *testing.T) {
			m := &evidence.Member{DB: &evidence.DB{KV: &dumpdb.KVStats{CurrentRev: c.cur}}}
			s := &subject{logView: &logView{m: m, alarms: &alarmLog{}}, writers: noted,
				openAlarms: apply.Alarms{{Member: 1, Type: apply.AlarmNoSpace}: {}}}
			s.AlarmsUnsure = true
			s.writeUnderNoAlarm(c.index, &Outcome{State: c.state, Rev: c.rev},
				&group{records: []record{{del: c.deletes}}})
			if s.AlarmsUnsure == c.settled || len(s.openAlarms) == 0 != c.settled {
				t.Errorf("unsure %t, open %v", s.AlarmsUnsure, s.openAlarms)
			}
		})
	}
	if n, known := (&writers{alarms: make([]alarmMark, maxAlarmChanges)}).after(1); known {
		t.Errorf("with more alarms than are kept: %d", n)
	}
}

// TestRootPasses: with users and roles unknown, a put of root with the auth revision that the member ends with has
// its effect for certain.
func TestRootPasses(t *testing.T) {
	for name, c := range map[string]struct {
		h    dumplog.Header
		sure bool
	}{
		"root":                       {dumplog.Header{Username: "root", AuthRevision: 9}, true},
		"root with an old revision":  {dumplog.Header{Username: "root", AuthRevision: 8}, false},
		"another user":               {dumplog.Header{Username: "app", AuthRevision: 9}, false},
		"no user while auth is on":   {dumplog.Header{}, false},
		"root, revision of the past": {dumplog.Header{Username: "root"}, false},
	} {
		m := apply.NewModel(release.AnyOf(5))
		m.Auth.Known, m.Auth.Enabled = false, true
		m.Auth.Users["root"] = &apply.User{Roles: []string{"root"}}
		m.Auth.Users["app"] = m.Auth.Users["root"]
		lv := &logView{m: &evidence.Member{DB: &evidence.DB{}}}
		lv.m.DB.Auth.Enabled, lv.m.DB.Auth.HasRevision, lv.m.DB.Auth.Revision = true, true, 9
		m.Passes = func(r *dumplog.Request) bool { return lv.passesAuth(r, 5, nil) }
		r := put("a", "1")
		r.Header = c.h
		if p := m.Evaluate(r); p.Sure != c.sure {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// mayAlarm lets any alarm be on, or not, in a span of entries.
func mayAlarm(lv *logView, from, to uint64) {
	lv.alarmed, lv.alarms = []Gap{{from, to}}, &alarmLog{unknown: true}
}

// noSpace raises an alarm NOSPACE in an entry.
func noSpace(lv *logView, index uint64) {
	lv.alarms = &alarmLog{fromStart: true,
		changes: []alarmChange{{index, apply.Alarm{Member: 1, Type: apply.AlarmNoSpace}, true}}}
	lv.alarmed = lv.alarms.spans()
}

// TestRefusedByAlarm: NOSPACE refuses what needs space, CORRUPT everything; an alarm that only a later entry shows may
// have been on.
func TestRefusedByAlarm(t *testing.T) {
	change := func(index uint64, kind int32, on bool) alarmChange {
		return alarmChange{index, apply.Alarm{Member: 1, Type: kind}, on}
	}
	raised, cleared := change(5, apply.AlarmNoSpace, true), change(8, apply.AlarmNoSpace, false)
	deep := txn(nil, nested(txn(nil, []dumplog.RequestOp{putOp("a", "1")}, nil)), nil)
	for name, c := range map[string]struct {
		changes []alarmChange
		index   uint64
		req     *dumplog.Request
		want    release.Answer
	}{
		"before it":             {[]alarmChange{raised}, 4, put("a", "1"), release.Unknown},
		"a delete before it":    {[]alarmChange{raised}, 4, del("a", ""), release.No},
		"a put":                 {[]alarmChange{raised, cleared}, 6, put("a", "1"), release.Yes},
		"a delete":              {[]alarmChange{raised, cleared}, 7, del("a", ""), release.No},
		"a nested put":          {[]alarmChange{raised}, 6, deep, release.Unknown}, // some releases count it
		"after it":              {[]alarmChange{raised, cleared}, 9, put("a", "1"), release.No},
		"CORRUPT and a delete":  {[]alarmChange{change(5, apply.AlarmCorrupt, true)}, 6, del("a", ""), release.Yes},
		"perhaps CORRUPT":       {[]alarmChange{change(8, apply.AlarmCorrupt, false)}, 6, del("a", ""), release.Unknown},
		"no alarm in the sight": {nil, 6, put("a", "1"), release.No},
	} {
		lv := &logView{m: &evidence.Member{}, alarms: &alarmLog{changes: c.changes}}
		lv.alarmed = lv.alarms.spans()
		for range 2 { // the second time from memory
			if got := lv.refusedByAlarm(c.req, c.index); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
		for _, other := range []uint64{0, 5, 8} { // an earlier entry, and later ones
			lv.refusedByAlarm(c.req, other)
			if got := lv.refusedByAlarm(c.req, c.index); got != c.want {
				t.Errorf("%s, after entry %d: %s, want %s", name, other, got, c.want)
			}
		}
	}
	lv := &logView{m: &evidence.Member{}}
	if mayAlarm(lv, 1, 9); lv.refusedByAlarm(del("a", ""), 5) != release.Unknown {
		t.Error("with too many changes of alarms the answer is unknown")
	}
}

// TestDropAlarms: an alarm of the database that no entry names was not on before an entry that it refuses, and that
// wrote a record.
func TestDropAlarms(t *testing.T) {
	for name, c := range map[string]struct {
		req    *dumplog.Request
		strong bool
		kind   int32
		keep   bool
	}{
		"a put":                        {req: put("a", "1"), strong: true, kind: apply.AlarmNoSpace},
		"a put that may be another's":  {req: put("a", "1"), kind: apply.AlarmNoSpace, keep: true},
		"a delete, which NOSPACE lets": {req: del("a", ""), strong: true, kind: apply.AlarmNoSpace, keep: true},
		"a delete under CORRUPT":       {req: del("a", ""), strong: true, kind: apply.AlarmCorrupt},
	} {
		w := newWindow(c.req)
		w.pairs = []pair{{entry: 0, rev: 5, strong: c.strong}}
		k := apply.Alarm{Member: 1, Type: c.kind}
		w.s.alarms = &alarmLog{always: []apply.Alarm{k}}
		w.s.alarmed = w.s.alarms.spans()
		w.s.refusedByAlarm(c.req, 1)
		if w.s.dropAlarms(w); w.s.mayBeAlarmed(1) != c.keep || len(w.s.alarms.always) > 0 != c.keep {
			t.Errorf("%s: kept %t", name, !c.keep)
		}
	}
	w := newWindow(put("a", "1"))
	w.pairs = []pair{{entry: 0, rev: 5, strong: true}}
	if w.s.dropAlarms(w); w.s.alarmed != nil {
		t.Error("without alarms")
	}
}

// TestDisputedAlarms: an alarm that no entry names and only one of two databases has may be on. One that an entry
// names, or that both have, is as before.
func TestDisputedAlarms(t *testing.T) {
	one, two := []dumpdb.Alarm{{MemberID: 1, Type: 1}}, []dumpdb.Alarm{{MemberID: 2, Type: 1}}
	cleared := map[uint64]*dumplog.Request{12: alarmRequest(2, 1)}
	for name, c := range map[string]struct {
		log              map[uint64]*dumplog.Request
		own, other       []dumpdb.Alarm
		always, disputed int
		answer           release.Answer // at entry 20, about a put
	}{
		"both have it":         {own: one, other: one, always: 1, answer: release.Yes},
		"the other lacks it":   {own: one, disputed: 1, answer: release.Unknown},
		"this one lacks it":    {other: one, disputed: 1, answer: release.Unknown},
		"none has one":         {answer: release.No},
		"an entry clears it":   {log: cleared, own: one, answer: release.No},
		"and the other has it": {log: cleared, other: one, answer: release.No},
		"each has one":         {own: one, other: two, disputed: 2, answer: release.Unknown},
		"one of two is disputed": {own: slices.Concat(one, two), other: one, always: 1, disputed: 1,
			answer: release.Yes},
	} {
		a := newAlarmLog(surveyed(c.log), 0, c.own)
		a.dispute(c.other)
		a.dispute(c.other) // as two other members do that agree
		lv := &logView{m: &evidence.Member{Version: evidence.Version{Minor: 5, Text: "3.5.x"}}, alarms: a,
			alarmed: a.spans()}
		if got := lv.refusedByAlarm(put("k", "v"), 20); got != c.answer || len(a.always) != c.always ||
			len(a.disputed) != c.disputed {
			t.Errorf("%s: %s, want %s; %d always, %d disputed", name, got, c.answer, len(a.always), len(a.disputed))
		}
	}
}
