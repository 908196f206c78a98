package replay

import (
	"sort"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// prediction is what the rules say an entry does on one member.
type prediction struct {
	state  State
	reason Reason
	writes []write
	// sure is false where the outcome depends on something the log does not tell (section "what can not be derived"):
	// the database then decides without being contradicted.
	sure bool
	// plain is true for a refusal by a permission rule on which all releases agree that the member may run.
	plain bool
	// rule is the rule that decides the outcome and that only some of the possible releases have; nil when there is none.
	rule *release.Rule
	// touches is false for requests that never write a key record.
	touches bool
}

// predict says what the entry does to the key space given the member's state. Requests that never write keys are handled
// by other.
func (s *sim) predict(r *dumplog.Request) prediction {
	switch {
	case r.Put != nil && r.Kind == dumplog.KindPut:
		return s.predictPut(r)
	case r.DeleteRange != nil && r.Kind == dumplog.KindDeleteRange:
		return s.predictDelete(r)
	case r.Txn != nil && r.Kind == dumplog.KindTxn:
		return s.predictTxn(r)
	case r.LeaseRevoke != nil && r.Kind == dumplog.KindLeaseRevoke:
		return s.predictRevoke(r)
	}
	return prediction{state: NoEffect, sure: true}
}

func (s *sim) predictPut(r *dumplog.Request) prediction {
	p := prediction{touches: true, sure: true, state: Applied}
	if v := s.alarms.Check(s.version, r); v.Refused() {
		return p.alarmed(v, s.alarmSure())
	}
	if v := s.rights().Put(r.Header, r.Put); v.Refused() {
		return p.refused(v, s.authSure(v.Reason))
	}
	w, reason, sure := s.evalPut(r.Put)
	p.sure = sure && s.rightsSure(r.Header) && !s.alarmsUnsure
	if reason != ReasonNone {
		p.state, p.reason = Refused, reason
		return p
	}
	p.writes = []write{w}
	return p
}

// evalPut is the check and the record of one put against the state before the request.
func (s *sim) evalPut(put *dumplog.PutRequest) (write, Reason, bool) {
	w := write{key: string(put.Key), vhash: hashValue(put.Value), lease: put.Lease, value: put.Value}
	if put.Lease != 0 && s.leases[put.Lease] == nil {
		if s.baseKnown {
			return w, ReasonLease, true
		}
		return w, ReasonNone, false
	}
	if l := s.leases[put.Lease]; l != nil && l.unsure {
		return w, ReasonNone, false
	}
	if !put.IgnoreValue && !put.IgnoreLease {
		return w, ReasonNone, !s.mayHaveForgotten(put.Lease)
	}
	old := s.keys.get(w.key)
	if old == nil {
		return w, ReasonKey, s.kvKnown
	}
	if put.IgnoreValue {
		w.vhash, w.value, w.from = old.vhash, nil, dumpdb.Rev{Main: old.mod, Sub: old.sub}
	}
	if put.IgnoreLease {
		w.lease = old.lease
	}
	return w, ReasonNone, s.kvKnown && !old.unsure
}

func (s *sim) predictDelete(r *dumplog.Request) prediction {
	p := prediction{touches: true, sure: s.kvKnown && s.rightsSure(r.Header) && !s.alarmsUnsure, state: Applied}
	d := r.DeleteRange
	if v := s.alarms.Check(s.version, r); v.Refused() {
		return p.alarmed(v, s.alarmSure())
	}
	if v := s.rights().Delete(r.Header, d); v.Refused() {
		return p.refused(v, s.authSure(v.Reason))
	}
	s.keys.ascend(d.Key, d.RangeEnd, func(k *keyState) bool {
		p.sure = p.sure && !k.unsure
		p.writes = append(p.writes, write{key: k.key, del: true})
		return true
	})
	if len(p.writes) == 0 {
		p.state = NoEffect
	}
	return p
}

// predictRevoke deletes the keys of the lease in key order in one revision (server/lease/lessor.go, Revoke).
func (s *sim) predictRevoke(r *dumplog.Request) prediction {
	id := r.LeaseRevoke.ID
	p := prediction{touches: true, sure: s.baseKnown && s.kvKnown && s.keys.unsure == 0 && !s.mayHaveForgotten(id), state: Applied}
	if v := s.alarms.Check(s.version, r); v.Refused() {
		return p.alarmed(v, s.alarmSure())
	}
	if v := s.rights().Revoke(r.Header, id); v.Refused() {
		return p.refused(v, s.authSure(v.Reason))
	}
	if s.leases[id] == nil && s.baseKnown {
		p.state, p.reason = Refused, ReasonLease
		return p
	}
	for _, k := range s.keysOf(id) {
		p.writes = append(p.writes, write{key: k, del: true})
	}
	return p
}

// refused is the prediction of a request that the permission rules refuse.
func (p prediction) refused(v apply.Verdict, sure bool) prediction {
	p.state, p.reason, p.rule, p.sure, p.plain = Refused, v.Reason, v.Rule, sure && v.Rule == nil, v.Rule == nil
	return p
}

// alarmed is the prediction of a request that an alarm refuses.
func (p prediction) alarmed(v apply.Verdict, sure bool) prediction {
	p.state, p.reason, p.rule, p.sure = Refused, v.Reason, v.Rule, sure && v.Rule == nil
	return p
}

// rights are the permission rules on the member's state.
func (s *sim) rights() *apply.Rights {
	return &apply.Rights{Auth: s.auth, KeysOf: s.keysOf, KeepsRanges: s.keepsRanges()}
}

// keepsRanges tells whether the member checks the ranges of a transaction: all releases do where the client waits, as that of a single
// member does, newer ones everywhere.
func (s *sim) keepsRanges() release.Answer {
	switch {
	case s.follows(release.TxnRangesKept) || s.single:
		return release.Yes
	case s.strips:
		return release.No
	}
	return release.Unknown
}

// keysOf lists the keys of a lease in order.
func (s *sim) keysOf(lease int64) []string {
	keys := make([]string, 0, len(s.keys.byLease[lease]))
	for k := range s.keys.byLease[lease] {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// alarmSure: up to 3.5 the wrappers of a running server change when an alarm is raised or cleared, and clearing one of two
// lifts both until the next start, so with two kinds raised the database decides.
func (s *sim) alarmSure() bool {
	return s.baseKnown && !(s.alarms.On(apply.AlarmNoSpace) && s.alarms.On(apply.AlarmCorrupt))
}

// authSure: a refusal for an old auth revision is certain when the member's own revision is; other permission rules
// changed within minor lines and, up to 3.5, are suspended while an alarm raised at run time is on.
func (s *sim) authSure(r Reason) bool {
	if len(s.alarms) > 0 && !s.follows(release.AlarmKeepsChecks) {
		return false
	}
	return r == ReasonOldAuth && s.auth.Known
}

// rightsSure tells whether the rights of an entry that the rules let pass are certain. Where the log does not reach back, users, roles and
// auth revision at that entry are those of the end, which may have been given later.
func (s *sim) rightsSure(h dumplog.Header) bool {
	return s.auth.Known || h.AuthRevision == 0 && !s.auth.Enabled
}
