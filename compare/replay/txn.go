package replay

import (
	"bytes"
	"sort"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// txnEval evaluates one transaction against the state before it: all compares of the whole tree first, then the chosen
// path's checks, then its writes, later ones seeing earlier ones (server/etcdserver/txn/txn.go).
type txnEval struct {
	s *sim
	// overlay holds what this transaction wrote so far; nil marks a deleted key.
	overlay map[string]*write
	writes  []write
	reason  Reason
	sure    bool
}

func (s *sim) predictTxn(r *dumplog.Request) prediction {
	p := prediction{touches: true, sure: true, state: Applied}
	if v := s.alarms.Check(s.version, r); v.Refused() {
		return p.alarmed(v, s.alarmSure())
	}
	if v := s.rights().Txn(r.Header, r.Txn); v.Refused() {
		return p.refused(v, s.authSure(v.Reason))
	}
	e := &txnEval{s: s, overlay: map[string]*write{}, sure: s.kvKnown && s.rightsSure(r.Header) && !s.alarmsUnsure}
	e.path(r.Txn, 0)
	p.sure = e.sure
	switch {
	case e.reason != ReasonNone:
		p.state, p.reason = Refused, e.reason
	case len(e.writes) == 0:
		p.state = NoEffect
	default:
		p.writes = e.writes
	}
	return p
}

func (e *txnEval) path(t *dumplog.TxnRequest, depth int) {
	if depth > apply.MaxTxnDepth {
		e.sure = false
		return
	}
	ops := t.Failure
	if e.compareAll(t.Compare) {
		ops = t.Success
	}
	e.check(ops, depth)
	if e.reason != ReasonNone {
		return
	}
	for _, op := range ops {
		switch {
		case op.Put != nil:
			e.put(op.Put)
		case op.DeleteRange != nil:
			e.delete(op.DeleteRange)
		case op.Txn != nil:
			e.path(op.Txn, depth+1)
		}
	}
}

// check refuses a path whose puts name unknown leases or keys, or whose ranges name a revision out of reach. Where
// members without a waiting client drop top-level ranges before this check, the database decides.
func (e *txnEval) check(ops []dumplog.RequestOp, depth int) {
	for _, op := range ops {
		switch {
		case op.Put != nil:
			_, reason, sure := e.s.evalPut(op.Put)
			e.sure = e.sure && sure
			if reason != ReasonNone {
				e.reason = reason
				return
			}
		case op.Range != nil && op.Range.Revision > 0:
			reason := ReasonNone
			if op.Range.Revision > e.s.rev {
				reason = ReasonFuture
			} else if op.Range.Revision < e.s.compact {
				reason = ReasonCompacted
			}
			e.sure = e.sure && !e.s.loose && (e.s.baseKnown || op.Range.Revision >= e.s.dbCompact)
			if reason != ReasonNone {
				kept := depth > 0 || e.s.keepsRanges().Certain()
				e.sure = e.sure && kept
				if kept {
					e.reason = reason
					return
				}
			}
		}
	}
}

func (e *txnEval) put(p *dumplog.PutRequest) {
	w, _, sure := e.s.evalPut(p)
	e.sure = e.sure && sure
	if prev, ok := e.overlay[w.key]; ok {
		e.inherit(&w, p, prev)
	}
	e.overlay[w.key] = &w
	e.writes = append(e.writes, w)
}

// inherit lets ignore_value and ignore_lease see what the transaction itself wrote before.
func (e *txnEval) inherit(w *write, p *dumplog.PutRequest, prev *write) {
	if prev.del {
		return
	}
	if p.IgnoreValue {
		w.vhash, w.value, w.from = prev.vhash, prev.value, prev.from
	}
	if p.IgnoreLease {
		w.lease = prev.lease
	}
}

func (e *txnEval) delete(d *dumplog.DeleteRangeRequest) {
	var keys []string
	e.s.keys.ascend(d.Key, d.RangeEnd, func(k *keyState) bool {
		if w, ok := e.overlay[k.key]; !ok || !w.del {
			e.sure = e.sure && (ok || !k.unsure)
			keys = append(keys, k.key)
		}
		return true
	})
	for key, w := range e.overlay {
		if !w.del && apply.InRange(key, d.Key, d.RangeEnd) && e.s.keys.get(key) == nil {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	for _, key := range keys {
		w := write{key: key, del: true}
		e.overlay[key] = &w
		e.writes = append(e.writes, w)
	}
}

func (e *txnEval) compareAll(cs []dumplog.Compare) bool {
	for i := range cs {
		if !e.compare(&cs[i]) {
			return false
		}
	}
	return true
}

// compare evaluates one compare; for a range every key must satisfy it. A missing key compares as zeros, but its value
// never compares true.
func (e *txnEval) compare(c *dumplog.Compare) bool {
	if len(c.RangeEnd) == 0 {
		k := e.s.keys.get(string(c.Key))
		if k == nil {
			if c.Target == targetValue {
				return false
			}
			k = &keyState{}
		}
		return e.one(c, k)
	}
	ok, any := true, false
	e.s.keys.ascend(c.Key, c.RangeEnd, func(k *keyState) bool {
		any = true
		ok = e.one(c, k)
		return ok
	})
	if !any {
		if c.Target == targetValue {
			return false
		}
		return e.one(c, &keyState{})
	}
	return ok
}

const (
	targetVersion = 0
	targetCreate  = 1
	targetMod     = 2
	targetValue   = 3
	targetLease   = 4

	resultEqual    = 0
	resultGreater  = 1
	resultLess     = 2
	resultNotEqual = 3
)

func (e *txnEval) one(c *dumplog.Compare, k *keyState) bool {
	if k.unsure || k.loose && (c.Target == targetCreate || c.Target == targetMod) || k.uncounted && c.Target == targetVersion {
		e.sure = false
	}
	var have int64
	switch c.Target {
	case targetVersion:
		have = k.version
	case targetCreate:
		have = k.create
	case targetMod:
		have = k.mod
	case targetLease:
		have = k.lease
	case targetValue:
		return e.value(c, k)
	}
	return relate(c.Result, have-c.Num, have == c.Num)
}

// value compares by hash; greater and less need the bytes. Where neither the database nor what the model keeps of them tells, the database
// decides.
func (e *txnEval) value(c *dumplog.Compare, k *keyState) bool {
	same := k.vhash == hashValue(c.Value)
	if v, ok := e.s.valueOf(k); ok {
		return relate(c.Result, int64(bytes.Compare(v, c.Value)), same)
	}
	if diff, known := k.relation(c.Value); known && !same {
		return relate(c.Result, int64(diff), same)
	}
	if c.Result == resultGreater || c.Result == resultLess {
		e.sure = e.sure && same
		return !same
	}
	return relate(c.Result, 0, same)
}

func relate(result dumplog.CompareResult, diff int64, same bool) bool {
	switch result {
	case resultEqual:
		return same
	case resultNotEqual:
		return !same
	case resultGreater:
		return diff > 0
	case resultLess:
		return diff < 0
	}
	return true
}
