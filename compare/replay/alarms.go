package replay

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Only entries of the log change an alarm. So a log that does not reach back to the first entry still shows which
// alarms were on at each entry. Alarms that no entry names are as in the database; the others are known from the first
// entry that names them.

// alarmChange is an entry that raises or clears an alarm.
type alarmChange struct {
	index uint64
	alarm apply.Alarm
	on    bool
}

// maxAlarmChanges bounds the changes that are kept. If a log holds more, its alarms are unknown.
const maxAlarmChanges = 10_000

// noteAlarm keeps an entry that changes an alarm. A member whose database is full raises its alarm again with every
// write that it refuses. Only the first of these entries is kept, and the first after a gap of the log.
func (t *lastStates) noteAlarm(index uint64, k apply.Alarm, on bool) {
	if was, ok := t.alarmNow[k]; ok && was == on {
		return
	}
	if len(t.alarmChanges) >= maxAlarmChanges {
		t.alarmsLeftOut = true
		return
	}
	t.alarmNow[k] = on
	t.alarmChanges = append(t.alarmChanges, alarmChange{index, k, on})
}

// alarmLog is what the log and the database of a member show about alarms.
type alarmLog struct {
	changes []alarmChange
	// always are alarms of the database that no entry names.
	always []apply.Alarm
	// disputed are alarms that no entry names, of which a database of another member shows otherwise: they may be on.
	disputed []apply.Alarm
	// fromStart is true where no alarm can have been on before the first entry.
	fromStart bool
	// unknown is true where the log changes alarms too often.
	unknown bool
}

// newAlarmLog uses the entries from an index on, after which the log has no gap.
func newAlarmLog(s *Survey, first uint64, database []dumpdb.Alarm) *alarmLog {
	a := &alarmLog{}
	if s.state != nil {
		a.unknown = s.state.alarmsLeftOut
		for _, c := range s.state.alarmChanges {
			if c.index >= first {
				a.changes = append(a.changes, c)
			}
		}
	}
	for _, d := range database {
		if k := alarmInRow(d); !a.names(k) {
			a.always = append(a.always, k)
		}
	}
	return a
}

func alarmInRow(d dumpdb.Alarm) apply.Alarm {
	return apply.Alarm{Member: dumplog.ID(d.MemberID), Type: d.Type}
}

// names reports whether an entry changes an alarm.
func (a *alarmLog) names(k apply.Alarm) bool {
	return slices.ContainsFunc(a.changes, func(c alarmChange) bool { return c.alarm == k })
}

// dispute compares the alarms with those of another database that has also executed everything before the entries:
// only entries change alarms, so all that no entry names are equal. Of a difference one row was added or removed.
func (a *alarmLog) dispute(other []dumpdb.Alarm) {
	theirs := make([]apply.Alarm, 0, len(other))
	for _, d := range other {
		theirs = append(theirs, alarmInRow(d))
	}
	for _, k := range theirs {
		if !slices.Contains(a.always, k) && !slices.Contains(a.disputed, k) && !a.names(k) {
			a.disputed = append(a.disputed, k)
		}
	}
	a.always = slices.DeleteFunc(a.always, func(k apply.Alarm) bool {
		lacks := !slices.Contains(theirs, k)
		if lacks {
			a.disputed = append(a.disputed, k)
		}
		return lacks
	})
}

// disputeAlarms compares the alarms of a member with those of all others of its cluster.
func (s *sim) disputeAlarms(r *Result) {
	if s.fromStart || s.m.AppliedMin+1 < s.first {
		return
	}
	for _, x := range r.Members {
		if o := x.Member; o != s.m && o.HasDB() && o.ClusterID == s.m.ClusterID && o.AppliedMin+1 >= s.first {
			s.alarms.dispute(o.DB.Alarms)
		}
	}
}

// at returns the alarms that are on after an entry, and those that may be: only a later entry shows them, or they are
// disputed.
func (a *alarmLog) at(index uint64) (on, open apply.Alarms) {
	on, open = apply.Alarms{}, apply.Alarms{}
	for _, k := range a.always {
		on[k] = struct{}{}
	}
	for _, k := range a.disputed {
		open[k] = struct{}{}
	}
	named := apply.Alarms{}
	for _, c := range a.changes {
		_, told := named[c.alarm]
		switch {
		case c.index > index && !told && !a.fromStart:
			open[c.alarm] = struct{}{}
		case c.index > index:
		case c.on:
			on[c.alarm], named[c.alarm] = struct{}{}, struct{}{}
		default:
			delete(on, c.alarm)
			named[c.alarm] = struct{}{}
		}
	}
	return on, open
}

// spans are the spans of entries at which an alarm was on, or may have been.
func (a *alarmLog) spans() []Gap {
	if a.unknown {
		return []Gap{{0, math.MaxUint64}}
	}
	on, open := a.at(0)
	var out []Gap
	from := uint64(0)
	add := func(to uint64) {
		if len(on)+len(open) > 0 {
			out = append(out, Gap{from, to})
		}
		from = to + 1
	}
	for _, c := range a.changes {
		add(c.index)
		delete(open, c.alarm)
		if delete(on, c.alarm); c.on {
			on[c.alarm] = struct{}{}
		}
	}
	add(math.MaxUint64)
	return out
}

// mayBeAlarmed reports whether an alarm was on, or may have been, when the member applied an entry.
func (lv *logView) mayBeAlarmed(index uint64) bool {
	return gaps(lv.alarmed).has(index)
}

// refusedByAlarm returns whether the alarms at an entry refuse its request.
func (lv *logView) refusedByAlarm(r *dumplog.Request, index uint64) release.Answer {
	switch {
	case !lv.mayBeAlarmed(index):
		return release.No
	case lv.alarms.unknown:
		return release.Unknown
	}
	n, _ := slices.BinarySearchFunc(lv.alarms.changes, index+1, func(c alarmChange, index uint64) int {
		return cmp.Compare(c.index, index)
	})
	if lv.alarmsOn == nil || lv.alarmsAt != n {
		lv.alarmsAt = n
		lv.alarmsOn, lv.alarmsPossible = lv.alarms.at(index)
		maps.Copy(lv.alarmsPossible, lv.alarmsOn)
	}
	least, most := lv.alarmsOn.Check(lv.version(), r), lv.alarmsPossible.Check(lv.version(), r)
	switch {
	case !most.Refused():
		return release.No
	case least.Refused() && least.Rule == nil:
		return release.Yes
	}
	return release.Unknown
}

// dropAlarms leaves out the alarms of the database that no entry names, where an entry that they refuse wrote a record:
// they were not on there, and no entry of the log raised them afterwards.
func (lv *logView) dropAlarms(win *window) {
	if lv.alarms == nil {
		return
	}
	on := apply.Alarms{}
	for _, k := range slices.Concat(lv.alarms.always, lv.alarms.disputed) {
		on[k] = struct{}{}
	}
	if len(on) == 0 {
		return
	}
	if slices.ContainsFunc(win.pairs, func(p pair) bool {
		refused := on.Check(lv.version(), win.items[p.entry].req)
		return p.strong && refused.Refused() && refused.Rule == nil
	}) {
		lv.alarms.always, lv.alarms.disputed, lv.alarmsOn = nil, nil, nil
		lv.alarmed = lv.alarms.spans()
	}
}

func (lv *logView) version() release.Version { return lv.m.Version.Release() }

// setAlarms fills in the alarms at the index where the model begins, according to log and database.
func (su *subject) setAlarms() {
	on, open := su.alarms.at(su.base)
	su.Alarms, su.openAlarms = on, open
	if su.alarms.unknown {
		su.Alarms = apply.Alarms{}
	}
	su.AlarmsUnsure = len(open) > 0 || su.alarms.unknown
	su.MixAlarms()
}

// writeUnderNoAlarm uses an entry that has put keys: then no alarm was on, and since only entries change alarms, none
// is on until the next entry about alarms. The records could be those of later, equal requests, if the servers refused
// all requests up to that next entry. So it counts only if there are more revisions from these records on than entries
// after it can have written, even if each was applied twice.
func (su *subject) writeUnderNoAlarm(index uint64, o *Outcome, g *group) {
	if len(su.openAlarms) == 0 || o.State != Applied || o.Rev == 0 || g.deletes() || su.writers == nil {
		return
	}
	later, known := su.writers.after(index)
	if known && su.m.CurrentRevision()-o.Rev+1 > 2*later {
		su.openAlarms = nil
		su.AlarmsUnsure = su.alarms.unknown
	}
}

// alarm executes an entry about alarms.
func (su *subject) alarm(it *item) {
	a := it.req.Alarm
	if !apply.ChangesAlarms(a) {
		return
	}
	su.touch(it, "alarm")
	su.Alarm(a)
	delete(su.openAlarms, apply.Alarm{Member: a.MemberID, Type: a.Alarm})
	su.AlarmsUnsure = su.AlarmsUnsure && (len(su.openAlarms) > 0 || su.alarms.unknown)
}
