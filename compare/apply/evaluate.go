package apply

import (
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Result is the outcome of a request.
type Result uint8

// The results of a request.
const (
	NoEffect Result = iota // a read, a failed compare without operations, a delete without keys
	Applied
	Refused // Reason says why
)

// Effect is what a request does to the keys according to the rules.
type Effect struct {
	Result Result
	Reason Reason
	Writes []Write
	// Sure is false if the effect depends on unknown state. Result and Writes are then the likely ones.
	Sure bool
	// Plain is true for a refusal by permission on which all possible releases agree.
	Plain bool
	// Rule is the deciding rule, if only some of the possible releases have it; otherwise nil.
	Rule *release.Rule
	// MayWrite is false for requests that never write a key.
	MayWrite bool
}

// WritesKeys reports whether a successful request of this kind creates a revision of the key space.
func WritesKeys(k dumplog.Kind) bool {
	switch k {
	case dumplog.KindPut, dumplog.KindDeleteRange, dumplog.KindTxn, dumplog.KindLeaseRevoke:
		return true
	}
	return false
}

// Evaluate returns what a request does to the keys. It changes nothing.
func (m *Model) Evaluate(r *dumplog.Request) Effect {
	switch {
	case r.Put != nil && r.Kind == dumplog.KindPut:
		return m.allowed(r, func() Verdict { return m.rights().Put(r.Header, r.Put) })
	case r.DeleteRange != nil && r.Kind == dumplog.KindDeleteRange:
		return m.allowed(r, func() Verdict { return m.rights().Delete(r.Header, r.DeleteRange) })
	case r.Txn != nil && r.Kind == dumplog.KindTxn:
		return m.allowed(r, func() Verdict { return m.rights().Txn(r.Header, r.Txn) })
	case r.LeaseRevoke != nil && r.Kind == dumplog.KindLeaseRevoke:
		return m.allowed(r, func() Verdict { return m.rights().Revoke(r.Header, r.LeaseRevoke.ID) })
	}
	return Effect{Sure: true}
}

// allowed evaluates a request unless an alarm or a permission refuses it.
func (m *Model) allowed(r *dumplog.Request, permission func() Verdict) Effect {
	refused := Effect{MayWrite: true}
	if v := m.Alarms.Check(m.Version, r); v.Refused() {
		return refused.refused(v, m.alarmSure())
	}
	if v := permission(); v.Refused() && !m.passes(r) {
		refused.Plain = v.Rule == nil
		return refused.refused(v, m.authSure(v.Reason))
	}
	e := m.EvaluateAllowed(r)
	if r.Kind != dumplog.KindLeaseRevoke {
		e.Sure = e.Sure && m.rightsSure(r) && !m.AlarmsUnsure
	}
	return e
}

// EvaluateAllowed returns what a request does to the keys if neither an alarm nor a permission nor an old auth revision
// refuses it. It changes nothing.
func (m *Model) EvaluateAllowed(r *dumplog.Request) Effect {
	e := Effect{MayWrite: true, Sure: true, Result: Applied}
	switch {
	case r.Put != nil && r.Kind == dumplog.KindPut:
		return m.evaluatePut(e, r)
	case r.DeleteRange != nil && r.Kind == dumplog.KindDeleteRange:
		return m.evaluateDelete(e, r)
	case r.Txn != nil && r.Kind == dumplog.KindTxn:
		return m.evaluateTxn(e, r)
	case r.LeaseRevoke != nil && r.Kind == dumplog.KindLeaseRevoke:
		return m.evaluateRevoke(e, r)
	}
	return Effect{Sure: true}
}

// refused returns the effect of a refused request.
func (e Effect) refused(v Verdict, sure bool) Effect {
	e.Result, e.Reason, e.Rule, e.Sure = Refused, v.Reason, v.Rule, sure && v.Rule == nil
	return e
}

// The functions below evaluate a request that is not refused before. Sure concerns the keys and leases alone.

func (m *Model) evaluatePut(e Effect, r *dumplog.Request) Effect {
	w, reason, sure := m.put(r.Put)
	e.Sure = sure
	if reason != ReasonNone {
		e.Result, e.Reason = Refused, reason
		return e
	}
	e.Writes = []Write{w}
	return e
}

// put checks one put against the state before the request, and returns its record.
func (m *Model) put(put *dumplog.PutRequest) (w Write, reason Reason, sure bool) {
	w = Write{Key: string(put.Key), Sum: SumOf(put.Value), Lease: put.Lease, Value: put.Value}
	lease := m.HasLease(put.Lease)
	if lease.Excluded() {
		return w, ReasonLease, true
	}
	if !put.IgnoreValue && !put.IgnoreLease {
		return w, ReasonNone, lease.Certain()
	}
	old := m.Keys.Get(w.Key)
	if old == nil {
		return w, ReasonKey, m.KeysKnown
	}
	if put.IgnoreValue {
		w.Sum, w.Value, w.From = old.Sum, nil, Rev{Main: old.Mod, Sub: old.Sub}
	}
	if put.IgnoreLease {
		w.Lease = old.Lease
	}
	return w, ReasonNone, lease.Certain() && m.KeysKnown && !old.Unsure
}

func (m *Model) evaluateDelete(e Effect, r *dumplog.Request) Effect {
	e.Sure = m.KeysKnown
	m.Keys.Range(r.DeleteRange.Key, r.DeleteRange.RangeEnd, func(k *Key) bool {
		e.Sure = e.Sure && !k.Unsure
		e.Writes = append(e.Writes, Write{Key: k.Name, Delete: true})
		return true
	})
	if len(e.Writes) == 0 {
		e.Result = NoEffect
	}
	return e
}

// evaluateRevoke deletes the keys of the lease in key order in one revision (server/lease/lessor.go, Revoke).
func (m *Model) evaluateRevoke(e Effect, r *dumplog.Request) Effect {
	id := r.LeaseRevoke.ID
	l := m.Leases[id]
	e.Sure = m.StateKnown && m.KeysKnown && m.Keys.Unsure() == 0 && !m.MayHaveForgotten(id) && (l == nil || !l.Unsure)
	if l == nil && m.StateKnown {
		e.Result, e.Reason = Refused, ReasonLease
		return e
	}
	for _, k := range m.Keys.OfLease(id) {
		e.Writes = append(e.Writes, Write{Key: k, Delete: true})
	}
	return e
}
