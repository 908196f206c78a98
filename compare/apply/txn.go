package apply

import (
	"bytes"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// transaction evaluates one transaction: first all compares of the whole tree against the state before it, then the
// checks of the chosen path, then its writes in order (server/etcdserver/txn/txn.go). The API checks before a proposal
// that each key is put only once and that there are not too many operations. This is not checked again.
type transaction struct {
	m *Model
	overlay
	writes []Write
	reason Reason
	sure   bool
}

func (m *Model) evaluateTxn(e Effect, r *dumplog.Request) Effect {
	t := &transaction{m: m, overlay: newOverlay(m.Keys), sure: m.KeysKnown}
	t.path(r.Txn, 0)
	e.Sure = t.sure
	switch {
	case t.reason != ReasonNone:
		e.Result, e.Reason = Refused, t.reason
	case len(t.writes) == 0:
		e.Result = NoEffect
	default:
		e.Writes = t.writes
	}
	return e
}

func (t *transaction) path(r *dumplog.TxnRequest, depth int) {
	if depth > MaxTxnDepth {
		t.sure = false
		return
	}
	ops := r.Failure
	holds, sure := t.m.compareAll(r.Compare)
	if t.sure = t.sure && sure; holds {
		ops = r.Success
	}
	t.check(ops, depth)
	if t.reason != ReasonNone {
		return
	}
	for _, op := range ops {
		switch {
		case op.Put != nil:
			t.put(op.Put)
		case op.DeleteRange != nil:
			t.delete(op.DeleteRange)
		case op.Txn != nil:
			t.path(op.Txn, depth+1)
		}
	}
}

// check refuses a path whose puts name unknown leases or keys, or whose ranges name an unavailable revision.
func (t *transaction) check(ops []dumplog.RequestOp, depth int) {
	for _, op := range ops {
		reason := ReasonNone
		switch {
		case op.Put != nil:
			sure := false
			_, reason, sure = t.m.put(op.Put)
			t.sure = t.sure && sure
		case op.Range != nil && op.Range.Revision != 0:
			reason = t.checkRange(op.Range.Revision, depth)
		}
		if reason != ReasonNone {
			t.reason = reason
			return
		}
	}
}

// checkRange refuses a range at an unavailable revision. The effect is uncertain if a member without a waiting client
// may have dropped a top-level range before this check.
func (t *transaction) checkRange(rev int64, depth int) Reason {
	m := t.m
	t.sure = t.sure && !m.Loose && (m.StateKnown || rev >= m.LastCompact)
	reason := ReasonNone
	switch {
	case rev > m.Revision:
		reason = ReasonFuture
	case rev < m.Compact:
		reason = ReasonCompacted
	}
	if reason == ReasonNone || depth > 0 || m.KeepsRanges().Certain() {
		return reason
	}
	t.sure = false
	return ReasonNone
}

func (t *transaction) put(p *dumplog.PutRequest) {
	w, _, sure := t.m.put(p)
	t.sure = t.sure && sure
	if prev, ok := t.last[w.Key]; ok {
		inherit(&w, p, prev)
	}
	t.overlay.put(&w)
	t.writes = append(t.writes, w)
}

// inherit resolves ignore_value and ignore_lease against earlier writes of the same transaction.
func inherit(w *Write, p *dumplog.PutRequest, prev *Write) {
	if prev.Delete {
		return
	}
	if p.IgnoreValue {
		w.Sum, w.Value, w.From = prev.Sum, prev.Value, prev.From
	}
	if p.IgnoreLease {
		w.Lease = prev.Lease
	}
}

func (t *transaction) delete(d *dumplog.DeleteRangeRequest) {
	keys, sure := t.overlay.remove(d)
	t.sure = t.sure && sure
	for _, key := range keys {
		t.writes = append(t.writes, Write{Key: key, Delete: true})
	}
}

// The targets and results of a compare.
const (
	TargetVersion = 0
	TargetCreate  = 1
	TargetMod     = 2
	TargetValue   = 3
	TargetLease   = 4

	ResultEqual    = 0
	ResultGreater  = 1
	ResultLess     = 2
	ResultNotEqual = 3
)

// compareAll reports whether all compares succeed. One that certainly fails decides, even if others are uncertain.
func (m *Model) compareAll(cs []dumplog.Compare) (holds, sure bool) {
	holds, sure = true, true
	for i := range cs {
		one, certain := m.compare(&cs[i])
		if !one && certain {
			return false, true
		}
		holds, sure = holds && one, sure && certain
	}
	return holds, sure
}

// compare evaluates one compare. For a range, every key must satisfy it. A missing key compares as zeros, but a compare
// of its value never succeeds.
func (m *Model) compare(c *dumplog.Compare) (holds, sure bool) {
	holds, sure = true, true
	found := false
	m.Keys.Range(c.Key, c.RangeEnd, func(k *Key) bool {
		found = true
		one, certain := m.compareKey(c, k)
		if !one && certain {
			holds, sure = false, true
			return false
		}
		holds, sure = holds && one, sure && certain
		return true
	})
	switch {
	case found:
		return holds, sure
	case c.Target == TargetValue:
		return false, true
	}
	return m.compareKey(c, &Key{})
}

func (m *Model) compareKey(c *dumplog.Compare, k *Key) (holds, sure bool) {
	var have int64
	counted := true
	switch c.Target {
	case TargetVersion:
		have, counted = k.Version, !k.Uncounted
	case TargetCreate:
		have, counted = k.Create, !k.Loose
	case TargetMod:
		have, counted = k.Mod, !k.Loose
	case TargetLease:
		have = k.Lease
	case TargetValue:
		holds, sure = m.compareValue(c, k)
		return holds, sure && !k.Unsure
	}
	if !counted && !k.Unsure && c.Num <= 0 {
		have, counted = 1, true // an existing key has a version and revisions above 0
	}
	return relate(c.Result, have-c.Num, have == c.Num), counted && !k.Unsure
}

// compareValue compares by hash. Greater and less need the bytes, if available.
func (m *Model) compareValue(c *dumplog.Compare, k *Key) (holds, sure bool) {
	same := k.Sum == SumOf(c.Value)
	if v, ok := m.valueOf(k); ok {
		return relate(c.Result, int64(bytes.Compare(v, c.Value)), same), true
	}
	if diff, known := k.relation(c.Value); known && !same {
		return relate(c.Result, int64(diff), same), true
	}
	if !same && (c.Result == ResultGreater || c.Result == ResultLess) {
		return true, false
	}
	return relate(c.Result, 0, same), true
}

// valueOf returns the value of a key, if its bytes are available; an absent key has none.
func (m *Model) valueOf(k *Key) ([]byte, bool) {
	if m.Value == nil || k.Name == "" {
		return nil, false
	}
	v, ok := m.Value(k.Name, Rev{Main: k.Mod, Sub: k.Sub})
	if !ok || !k.Unsure && SumOf(v) != k.Sum {
		return nil, false // not what the request wrote
	}
	return v, true
}

func relate(result dumplog.CompareResult, diff int64, same bool) bool {
	switch result {
	case ResultEqual:
		return same
	case ResultNotEqual:
		return !same
	case ResultGreater:
		return diff > 0
	case ResultLess:
		return diff < 0
	}
	return true
}
