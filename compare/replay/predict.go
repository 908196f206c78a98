package replay

import (
	"sort"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// prediction is what the rules say an entry does on one member.
type prediction struct {
	state  State
	reason Reason
	writes []write
	// sure is false where the outcome depends on something the log does not tell (section "what can not be derived"):
	// the database then decides without being contradicted.
	sure bool
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
	if reason := s.alarmed(r); reason != ReasonNone {
		p.state, p.reason, p.sure = Refused, reason, s.alarmSure()
		return p
	}
	if reason := s.putPermission(r.Header, r.Put); reason != ReasonNone {
		p.state, p.reason, p.sure = Refused, reason, s.authSure(reason)
		return p
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
	if reason := s.corrupt(); reason != ReasonNone {
		p.state, p.reason, p.sure = Refused, reason, s.alarmSure()
		return p
	}
	reason := s.auth.check(r.Header, d.Key, d.RangeEnd, true)
	if reason == ReasonNone && d.PrevKV {
		reason = s.auth.check(r.Header, d.Key, d.RangeEnd, false)
	}
	if reason != ReasonNone {
		p.state, p.reason, p.sure = Refused, reason, s.authSure(reason)
		return p
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
	if reason := s.corrupt(); reason != ReasonNone {
		p.state, p.reason, p.sure = Refused, reason, s.alarmSure()
		return p
	}
	var keys []string
	for k := range s.keys.byLease[id] {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	if reason, sure := s.leasePermission(r.Header, keys); reason != ReasonNone {
		p.state, p.reason, p.sure = Refused, reason, sure
		return p
	}
	if s.leases[id] == nil && s.baseKnown {
		p.state, p.reason = Refused, ReasonLease
		return p
	}
	for _, k := range keys {
		p.writes = append(p.writes, write{key: k, del: true})
	}
	return p
}

// putPermission checks the key, and every other key of the lease the put attaches to (server/etcdserver/apply_auth.go).
func (s *sim) putPermission(h dumplog.Header, put *dumplog.PutRequest) Reason {
	if reason := s.auth.check(h, put.Key, nil, true); reason != ReasonNone {
		return reason
	}
	if put.Lease != 0 {
		for k := range s.keys.byLease[put.Lease] {
			if reason := s.auth.check(h, []byte(k), nil, true); reason != ReasonNone {
				return reason
			}
		}
	}
	if put.PrevKV {
		return s.auth.check(h, put.Key, nil, false)
	}
	return ReasonNone
}

// leasePermission: a revoke needs write permission on every key of the lease. Root passes unseen from 3.4.27 and 3.5.10
// on; before, a stale auth revision rejected even root, so for root the database decides.
func (s *sim) leasePermission(h dumplog.Header, keys []string) (Reason, bool) {
	for _, k := range keys {
		reason := s.auth.check(h, []byte(k), nil, true)
		if reason == ReasonNone {
			continue
		}
		if s.auth.isRoot(h.Username) || h.Username == rootName {
			return ReasonNone, true
		}
		return reason, false
	}
	return ReasonNone, true
}

// alarmed: NOSPACE rejects puts, lease grants and transactions that cost space; CORRUPT rejects everything.
func (s *sim) alarmed(r *dumplog.Request) Reason {
	if reason := s.corrupt(); reason != ReasonNone {
		return reason
	}
	if s.alarmOn(alarmNoSpace) && (r.Put != nil || r.LeaseGrant != nil || r.Txn != nil && s.cost(r.Txn) > 0) {
		return ReasonNoSpace
	}
	return ReasonNone
}

func (s *sim) corrupt() Reason {
	if s.alarmOn(alarmCorrupt) {
		return ReasonCorrupt
	}
	return ReasonNone
}

const (
	alarmNoSpace = 1
	alarmCorrupt = 2
)

func (s *sim) alarmOn(t int32) bool {
	for a := range s.alarms {
		if a.typ == t {
			return true
		}
	}
	return false
}

// alarmSure: up to 3.5 the wrappers of a running server change when an alarm is raised or cleared, and clearing one of two
// lifts both until the next start, so with two kinds raised the database decides.
func (s *sim) alarmSure() bool {
	return s.baseKnown && !(s.alarmOn(alarmNoSpace) && s.alarmOn(alarmCorrupt))
}

// authSure: a refusal for an old auth revision is certain when the member's own revision is; other permission rules
// changed within minor lines and, up to 3.5, are suspended while an alarm raised at run time is on.
func (s *sim) authSure(r Reason) bool {
	if len(s.alarms) > 0 && s.minor < 6 {
		return false
	}
	return r == ReasonOldAuth && s.auth.known
}

// rightsSure tells whether the rights of an entry that the rules let pass are certain. Where the log does not reach back, users, roles and
// auth revision at that entry are those of the end, which may have been given later.
func (s *sim) rightsSure(h dumplog.Header) bool {
	return s.auth.known || h.AuthRevision == 0 && !s.auth.enabled
}

// cost is the space a transaction may need: the dearer of its branches (server/etcdserver/quota.go).
func (s *sim) cost(t *dumplog.TxnRequest) int {
	sum := func(ops []dumplog.RequestOp) int {
		n := 0
		for _, op := range ops {
			if op.Put != nil {
				n += 256 + len(op.Put.Key) + len(op.Put.Value)
			}
		}
		return n
	}
	return max(sum(t.Success), sum(t.Failure))
}
