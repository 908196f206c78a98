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
}
