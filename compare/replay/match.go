package replay

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// matches reports whether the group is exactly the predicted writes.
func matches(ws []apply.Write, g *group) bool {
	if len(ws) != len(g.records) {
		return false
	}
	for i, w := range ws {
		r := &g.records[i]
		if r.bad || r.marked || r.rev.Sub != int64(i) || w.Key != r.key || w.Delete != r.del {
			return false
		}
		if !w.Delete && (w.Lease != r.lease || w.Sum != r.vhash) {
			return false
		}
	}
	return true
}

// sameKeys reports whether the group touches exactly the predicted keys in the predicted way, whatever the values.
func sameKeys(ws []apply.Write, g *group) bool {
	if len(ws) != len(g.records) {
		return false
	}
	for i, w := range ws {
		if w.Key != g.records[i].key || w.Delete != g.records[i].del {
			return false
		}
	}
	return true
}

// sameNames is sameKeys for records whose mark of a tombstone may be wrong.
func sameNames(ws []apply.Write, g *group) bool {
	return slices.EqualFunc(ws, g.records, func(w apply.Write, r record) bool { return w.Key == r.key })
}

// couldWrite reports whether a request could have written the group in some state of the key space.
func couldWrite(r *dumplog.Request, g *group) bool {
	var rest []record
	ok := false
	switch {
	case r.Kind == dumplog.KindPut:
		rest, ok = eatPut(r.Put, g.records)
	case r.Kind == dumplog.KindDeleteRange:
		rest, ok = eatDelete(r.DeleteRange, g.records), true
	case r.Kind == dumplog.KindLeaseRevoke:
		for _, rec := range g.records {
			if !rec.deleted() {
				return false
			}
		}
		return true
	case r.Kind == dumplog.KindTxn:
		return couldTxn(r.Txn, g.records)
	}
	return ok && len(rest) == 0
}

// couldHaveWritten is couldWrite with the knowledge of the model: a lease revoke deletes exactly the keys of its lease,
// and a put that keeps value or lease writes those that the key has.
func (ma *matcher) couldHaveWritten(r *dumplog.Request, g *group) bool {
	if !couldWrite(r, g) {
		return false
	}
	if r.Put != nil && keeps(r.Put) {
		e := ma.EvaluateAllowed(r)
		return !e.Sure || matches(e.Writes, g)
	}
	if r.Kind != dumplog.KindLeaseRevoke || !ma.KeysKnown {
		return true
	}
	id := r.LeaseRevoke.ID
	for i := range g.records {
		if !ma.Keys.Attached(id, g.records[i].key) {
			return false
		}
	}
	return len(g.records) == ma.Keys.CountOfLease(id)
}

// othersBy reports whether the records are certainly not those of a request, whose user, rights or alarms may be
// unknown: with the keys as they are it would write others, or none, and an entry ahead can have written them.
func (ma *matcher) othersBy(r *dumplog.Request, g *group, ahead []*item) bool {
	e := ma.EvaluateAllowed(r)
	return e.Sure && !sameKeys(e.Writes, g) && ma.writtenBy(ahead, 0, g)
}

func couldTxn(t *dumplog.TxnRequest, recs []record) bool {
	then, orElse := branches(t)
	return then && couldOps(t.Success, recs) || orElse && couldOps(t.Failure, recs)
}

// couldOps reports whether operations could have written exactly the records, whichever branches their nested
// transactions took.
func couldOps(ops []dumplog.RequestOp, recs []record) bool {
	e := eater{steps: maxEatSteps}
	return e.eat(ops, recs, 0, func(rest []record) bool { return len(rest) == 0 })
}

// guardFits reports whether the compares for equality allow that a transaction wrote the group. The key must have had
// the mod revision in the compare, and the record shows which version and create revision it had. standsOn reports
// whether a key can have had a mod revision right before the group.
func guardFits(r *dumplog.Request, g *group, standsOn func(key string, rev int64) bool) bool {
	if r.Txn == nil || len(r.Txn.Failure) > 0 && couldOps(r.Txn.Failure, g.records) {
		return true
	}
	return !slices.ContainsFunc(r.Txn.Compare, func(c dumplog.Compare) bool {
		if c.Result != apply.ResultEqual || len(c.RangeEnd) > 0 {
			return false
		}
		if c.Target == apply.TargetMod {
			return c.Num >= g.main || !standsOn(string(c.Key), c.Num)
		}
		told, fits := stateBefore(&c, g)
		return told && !fits
	})
}

// stateBefore compares the version or the create revision in a compare for equality with the key's state before its
// record. told is false if the record does not show it.
func stateBefore(c *dumplog.Compare, g *group) (told, fits bool) {
	i := slices.IndexFunc(g.records, func(x record) bool { return x.key == string(c.Key) })
	if i < 0 || g.records[i].del || g.records[i].bad {
		return false, false
	}
	switch r := &g.records[i]; {
	case c.Target == apply.TargetVersion:
		return true, r.version == c.Num+1
	case c.Target == apply.TargetCreate && c.Num == 0:
		return true, r.version == 1
	case c.Target == apply.TargetCreate:
		return true, r.create == c.Num
	}
	return false, false
}

// maxEatSteps bounds the branches that are tried: a request of a hostile log may nest without end. Past it anything is
// possible.
const maxEatSteps = 10_000

type eater struct{ steps int }

// eat removes the records that the operations would write from the front and passes on the rest.
func (e *eater) eat(ops []dumplog.RequestOp, recs []record, depth int, then func([]record) bool) bool {
	if e.steps--; e.steps < 0 || depth > apply.MaxTxnDepth {
		return true
	}
	if len(ops) == 0 {
		return then(recs)
	}
	op, later := ops[0], ops[1:]
	next := func(rest []record) bool { return e.eat(later, rest, depth, then) }
	switch {
	case op.Put != nil:
		rest, ok := eatPut(op.Put, recs)
		return ok && next(rest)
	case op.DeleteRange != nil:
		return next(eatDelete(op.DeleteRange, recs))
	case op.Txn != nil:
		then, orElse := branches(op.Txn)
		return then && e.eat(op.Txn.Success, recs, depth+1, next) ||
			orElse && e.eat(op.Txn.Failure, recs, depth+1, next)
	}
	return next(recs)
}

// eatPut takes the record of a put. One that keeps the value or the lease is refused if the key does not exist, so it
// never writes the first version of a key.
func eatPut(p *dumplog.PutRequest, recs []record) ([]record, bool) {
	if len(recs) == 0 {
		return recs, false
	}
	r := &recs[0]
	if keeps(p) && r.version == 1 {
		return recs, false
	}
	if r.deleted() || r.key != string(p.Key) || !p.IgnoreValue && r.vhash != apply.SumOf(p.Value) || !p.IgnoreLease &&
		r.lease != p.Lease {
		return recs, false
	}
	return recs[1:], true
}

func eatDelete(d *dumplog.DeleteRangeRequest, recs []record) []record {
	for len(recs) > 0 && recs[0].deleted() && apply.InRange(recs[0].key, d.Key, d.RangeEnd) {
		recs = recs[1:]
	}
	return recs
}

// sig hashes the group's content without its revision, so that one effect has one signature on every member.
func (g *group) sig() uint64 {
	var sum uint64
	for i := range g.records {
		r := &g.records[i]
		var b [17]byte
		binary.LittleEndian.PutUint64(b[:], uint64(r.lease))
		if r.del {
			b[16] = 1
		} else {
			binary.LittleEndian.PutUint64(b[8:], r.vhash)
		}
		sum = xxh3.HashSeed(b[:], xxh3.HashStringSeed(r.key, sum))
	}
	return sum | 1
}
