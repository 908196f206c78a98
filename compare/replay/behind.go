package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Behind counts the entries between a member's consistent index and its newest raft snapshot. A server of etcd 3.5 and
// later cannot start with such a gap. In older releases the index legally lags.
type Behind struct {
	// From and To are the span; Entries of them were found in a log.
	From, To uint64
	Entries  int
	// AlarmQueries are requests to list alarms, Refused those that the rules refuse, Idle all others without an effect:
	// reads, logins, leaders' first entries.
	AlarmQueries, Refused, Idle int
	// AlarmRaises are requests to raise an alarm that is on already.
	AlarmRaises int
	// Effective are entries that change data or may; FirstEffective is the first of them, 0 when there is none.
	Effective      int
	FirstEffective uint64
}

// Harmless reports whether every entry of the span is known and without an effect.
func (b *Behind) Harmless() bool {
	return b.Effective == 0 && uint64(b.Entries) == b.To-b.From+1
}

// behind counts an entry that the member has not applied although a snapshot of its log covers it. It does not change
// the model. After the first effective entry the predictions are of no use, but then the span is not harmless anyway.
func (s *sim) behind(it *item, elsewhere bool) {
	idx := it.entry.Index
	if !s.follows(release.IndexWithEveryEntry) || idx > s.newestSnap {
		return
	}
	b := s.res.Behind
	if b == nil {
		b = &Behind{From: s.m.AppliedMax + 1, To: s.newestSnap}
		s.res.Behind = b
	}
	b.Entries++
	state := s.idle(it.req)
	if elsewhere && apply.WritesKeys(it.req.Kind) {
		state = Applied
	}
	switch {
	case state == NoEffect && it.req.Alarm != nil && !apply.ChangesAlarms(it.req.Alarm):
		b.AlarmQueries++
	case state == NoEffect && it.req.Alarm != nil:
		b.AlarmRaises++
	case state == Refused:
		b.Refused++
	case state == NoEffect:
		b.Idle++
	default:
		if b.Effective++; b.FirstEffective == 0 {
			b.FirstEffective = idx
		}
	}
}

// idle predicts an entry without applying it: Refused and NoEffect as they are, anything else for an effect. A query of
// alarms has none, nor has raising one that is on.
func (s *sim) idle(r *dumplog.Request) State {
	switch {
	case r.Alarm != nil:
		_, on := s.Alarms[apply.Alarm{Member: r.Alarm.MemberID, Type: r.Alarm.Alarm}]
		if !apply.ChangesAlarms(r.Alarm) || r.Alarm.Action == 1 && on {
			return NoEffect
		}
		return Applied
	case apply.WritesKeys(r.Kind):
		return stateOf(s.Evaluate(r).Result)
	case r.Kind.ChangesAuth():
		if s.Auth.Known && s.Auth.AdminCheck(r) != ReasonNone {
			return Refused
		}
		return Applied
	case r.Kind == dumplog.KindEmpty, r.Kind == dumplog.KindRange, r.Kind == dumplog.KindDowngradeVersionTest,
		r.Kind.IsAuth():
		return NoEffect
	}
	return Applied
}

// someApplied reports whether an entry changed the keys of any member.
func someApplied(os []Outcome) bool {
	return slices.ContainsFunc(os, func(o Outcome) bool { return o.State == Applied && o.Sig != 0 })
}
