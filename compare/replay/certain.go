package replay

import (
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// If a log does not reach back to the first entry, some conclusions about keys below the compact revision are still
// certain. A plain put writes in every state of the key space, and so does one on an existing lease. A delete removes
// the key. A key that no later entry names stays unchanged.

// certainKey is what a key must be at the place where log and database meet.
type certainKey struct {
	index uint64
	sum   uint64
	lease int64
	gone  bool
}

// deletedRange is a range that an entry deleted.
type deletedRange struct {
	key, end []byte
	index    uint64
}

// certainty is what the log says for certain about the keys at the place.
type certainty struct {
	keys map[string]certainKey
	// ranges are the last ranges that were deleted, put the last entries that may have put each key.
	ranges []deletedRange
	put    map[string]uint64
	full   bool
	// waiting are the last entries, which learn uses once they were counted.
	waiting []*kept
}

// maxCertain bounds the keys that are remembered, maxDeletedRanges the ranges.
const (
	maxCertain       = 1_000_000
	maxDeletedRanges = 32
)

// remember keeps an entry before the place where log and database meet.
func (be *belowPlace) remember(it *item) {
	if it.err != nil {
		be.certain, be.lastWriter = nil, nil // it may have changed any key
		return
	}
	if !be.whole || !apply.WritesKeys(it.req.Kind) || be.refusedByAlarm(it.req, it.entry.Index).Certain() {
		return
	}
	if mayWrite(it.req) {
		be.lastWriter = nil
		if PlainPut(it.req) && be.alwaysWrites(it.req, it.entry.Index) {
			be.lastWriter = &apply.Key{Name: string(it.req.Put.Key), Entry: it.entry.Index, Mod: be.meet.rev,
				Sum: apply.SumOf(it.req.Put.Value)}
		}
	}
	if be.certain == nil {
		be.certain = &certainty{keys: map[string]certainKey{}, put: map[string]uint64{}}
	}
	be.certain.waiting = append(be.certain.waiting, be.keep(it))
	if n := len(be.certain.waiting); n == 2*maxCounted {
		be.certain.learnAll(be.certain.waiting[:maxCounted], nil, nil)
		be.certain.waiting = slices.Delete(be.certain.waiting, 0, maxCounted)
	}
}

// learnAll learns from entries, some of which are known to have written, and others not.
func (c *certainty) learnAll(entries []*kept, wrote, quiet map[*kept]bool) {
	for _, k := range entries {
		ops, use := k.all, c.maybe
		switch {
		case k.sure:
			ops, use = k.ops, c.took
		case quiet[k]:
			continue
		case k.revoke != 0:
			maps.DeleteFunc(c.keys, func(_ string, x certainKey) bool { return x.lease == k.revoke })
		case wrote[k] && k.known:
			ops, use = k.ops, c.took
		}
		for _, op := range ops {
			use(op, k.index)
		}
	}
}

// sureOps returns the puts and deletes that a request executes in every state of the key space, and false where that
// depends on its state.
func (lv *logView) sureOps(r *dumplog.Request, index uint64) (ops []dumplog.RequestOp, sure bool) {
	switch {
	case !lv.alwaysWrites(r, index):
		return nil, false
	case r.Kind == dumplog.KindPut:
		ops = []dumplog.RequestOp{{Put: r.Put}}
	case r.Kind == dumplog.KindDeleteRange:
		ops = []dumplog.RequestOp{{DeleteRange: r.DeleteRange}}
	case r.Kind == dumplog.KindTxn && len(r.Txn.Compare) == 0:
		ops = r.Txn.Success
	default:
		return nil, false
	}
	for _, op := range ops {
		switch {
		case op.Txn != nil, op.Range != nil && op.Range.Revision != 0:
			return nil, false
		case op.Put != nil && (keeps(op.Put) || !lv.leaseWasThere(op.Put.Lease, index)):
			return nil, false
		}
	}
	return ops, true
}

// leaseWasThere reports whether a lease that the database holds existed at an entry: no log grants it later.
func (lv *logView) leaseWasThere(id int64, index uint64) bool {
	if id == 0 {
		return true
	}
	if lv.heldLeases == nil {
		lv.heldLeases = map[int64]bool{}
		for _, l := range lv.m.DB.Leases {
			lv.heldLeases[int64(l.ID)] = true
		}
	}
	granted, complete := lv.grantedAt(id)
	return complete && granted < index && lv.heldLeases[id]
}

// took notes an operation that was certainly executed.
func (c *certainty) took(op keptOp, index uint64) {
	c.full = c.full || len(c.keys)+len(c.put) >= maxCertain
	switch {
	case op.put && !op.valued:
		c.maybe(op, index)
	case op.put:
		c.noteKey(string(op.key), certainKey{index: index, sum: op.sum, lease: op.lease})
		c.notePut(string(op.key), index)
	case len(op.end) == 0:
		c.noteKey(string(op.key), certainKey{index: index, gone: true})
	default:
		for k := range c.keys {
			if apply.InRange(k, op.key, op.end) {
				c.keys[k] = certainKey{index: index, gone: true}
			}
		}
		if len(c.ranges) == maxDeletedRanges {
			c.ranges = slices.Delete(c.ranges, 0, 1)
		}
		c.ranges = append(c.ranges, deletedRange{op.key, op.end, index})
	}
}

func (c *certainty) noteKey(name string, k certainKey) {
	if _, have := c.keys[name]; have || !c.full {
		c.keys[name] = k
	}
}

func (c *certainty) notePut(name string, index uint64) {
	if c.full {
		c.ranges = nil // a put that is not remembered may have followed
		return
	}
	c.put[name] = index
}

// maybe notes an operation that may have been executed, or not.
func (c *certainty) maybe(op keptOp, index uint64) {
	switch {
	case op.put:
		delete(c.keys, string(op.key))
		c.notePut(string(op.key), index)
	case len(op.end) == 0:
		if k := string(op.key); !c.keys[k].gone {
			delete(c.keys, k)
		}
	default:
		maps.DeleteFunc(c.keys, func(k string, x certainKey) bool {
			return !x.gone &&
				apply.InRange(k, op.key, op.end)
		})
	}
}

// recall compares what is certain with the keys that the database had at the place.
func (be *belowPlace) recall() {
	if c := be.certain; c != nil {
		wrote, quiet := be.count(c.waiting)
		c.learnAll(c.waiting, wrote, quiet)
		be.recallKeys(be.certain)
		be.recallRanges(be.certain)
		be.certain = nil
	}
	be.recallLast()
}

// recallKeys compares the keys for which the last entry that put or deleted them is known.
func (be *belowPlace) recallKeys(c *certainty) {
	for _, k := range sortedKeys(c.keys) {
		want, got := c.keys[k], be.Keys.Get(k)
		if want.gone && got == nil || got != nil && !want.gone && got.Sum == want.sum && got.Lease == want.lease {
			continue
		}
		d := BelowDiff{Key: k, Index: want.index, Expected: "absent", Observed: "absent"}
		if !want.gone {
			d.Expected = be.textOf(&apply.Key{Sum: want.sum, Lease: want.lease, Loose: true})
		}
		if got != nil {
			d.Rev, d.Observed = got.Mod, be.textOf(got)
		}
		be.below(d)
	}
}

// recallRanges looks for keys in deleted ranges that no entry after the delete can have put.
func (be *belowPlace) recallRanges(c *certainty) {
	be.Keys.All(func(got *apply.Key) bool {
		if _, have := c.keys[got.Name]; have {
			return true
		}
		for i := len(c.ranges) - 1; i >= 0; i-- {
			r := &c.ranges[i]
			if r.index > c.put[got.Name] && apply.InRange(got.Name, r.key, r.end) {
				be.below(BelowDiff{Key: got.Name, Index: r.index, Rev: got.Mod, Expected: "absent",
					Observed: be.textOf(got)})
				return true
			}
		}
		return true
	})
}

// recallLast looks for the record of the last entry before the place: where that must have written, it made the
// revision of the place.
func (be *belowPlace) recallLast() {
	w := be.lastWriter
	be.lastWriter = nil
	if w == nil || be.meet.rev <= be.floor() {
		return
	}
	if got := be.Keys.Get(w.Name); got != nil && got.Sum == w.Sum && got.Mod != be.meet.rev {
		be.below(BelowDiff{Key: w.Name, Index: w.Entry, Rev: got.Mod,
			Expected: fmt.Sprintf("revision %d, the last one up to that entry", be.meet.rev),
			Observed: fmt.Sprintf("revision %d", got.Mod)})
	}
}
