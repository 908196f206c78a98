package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
)

// Records that no entry wrote, among entries whose outcome the rules leave open: what follows shows which they are.

// resyncUnsure is resync for an entry that may have had no effect. The next records belong to a later entry, unless
// none can have written them and the entries ahead fit the records after them. Then they replace this entry's if they
// name its keys; else they are extra.
func (ma *matcher) resyncUnsure(it *item, p apply.Effect, ahead []*item) Outcome {
	noEffect := Outcome{State: NoEffect, Open: true, Detail: mayHaveNone}
	switch {
	case !ma.KeysKnown:
		return Outcome{State: OutsideHistory, Detail: "what unreadable pages hold decides it"}
	case ma.strayBefore(it, ahead):
		return ma.afterStray(it, ahead)
	case !ma.stray(ahead) && !ma.lastOnes(it, ahead):
		return noEffect
	}
	g := ma.cur.peek(0)
	if names(it.req, g) {
		return ma.inPlace(it, p, g)
	}
	for _, a := range ahead[:min(len(ahead), enoughToSkip)] {
		if names(a.forMember(ma.pos).req, g) {
			return noEffect // the record is for that entry's keys
		}
	}
	return ma.afterStray(it, ahead)
}

// afterStray matches an entry with the records after the next ones, which no entry wrote.
func (ma *matcher) afterStray(it *item, ahead []*item) Outcome {
	ma.extra(ma.cur.take())
	return ma.match(it, ma.Evaluate(it.req), ahead)
}

// strayBefore reports whether no entry wrote the next records, this one those after them, and the entries ahead the
// records that follow.
func (ma *matcher) strayBefore(it *item, ahead []*item) bool {
	g, own := ma.cur.peek(0), ma.cur.peek(1)
	if own == nil || own.hole || own.main != g.main+1 || !ma.KeysKnown || ma.unknownNear(ahead) ||
		couldWrite(it.req, g) || !ma.couldHaveWritten(it.req, own) || ma.writtenBy(ahead, 0, g) {
		return false
	}
	without, with := ma.fit(ahead, 0), ma.fit(ahead, 2)
	if with.misfits != without.misfits {
		return with.misfits < without.misfits
	}
	return with.matched >= without.matched+enoughToSkip
}

// unknownNear reports whether one of the next entries is not known, since it does not decode or logs differ in it: it
// may have written any records.
func (ma *matcher) unknownNear(ahead []*item) bool {
	return slices.ContainsFunc(ahead[:min(len(ahead), nearUnknown)],
		func(a *item) bool { return a.forMember(ma.pos).err != nil })
}

// stray reports whether the entries ahead fit the records after the next ones, and not the next ones themselves: no
// entry wrote these, and none of those ahead is unknown.
func (ma *matcher) stray(ahead []*item) bool {
	if ma.unknownNear(ahead) {
		return false
	}
	without, with := ma.assign(ahead, 0, true), ma.assign(ahead, 1, true)
	switch {
	case with.misfits != without.misfits:
		return with.misfits < without.misfits
	case without.matched == 0:
		return with.matched >= enoughToSkip
	}
	return with.matched >= without.matched+enoughToSkip
}

// othersMayHave reports whether an entry ahead may have written the next records, as the current one may, if they do
// not decode. It ends at the first entry that can have written the records after them.
func (ma *matcher) othersMayHave(ahead []*item) bool {
	after := ma.cur.peek(1)
	for i, a := range ahead {
		own := a.forMember(ma.pos)
		switch {
		case own.err != nil:
			return true
		case !apply.WritesKeys(own.req.Kind):
			continue
		case own.entry.Index > ma.m.AppliedMin,
			after != nil && !after.hole && ma.couldWriteLater(own.req, after, ahead[:i]):
			return false
		}
		if q := ma.Evaluate(own.req); !q.Sure || len(q.Writes) > 0 {
			return true
		}
	}
	return false
}

// lastOnes reports whether this entry and those ahead are as many as the revisions that are left, and each can have
// written its own or names its key: then records that do not fit were altered. One of them at least must fit.
func (ma *matcher) lastOnes(it *item, ahead []*item) bool {
	if len(ahead) >= lookahead {
		return false // more may follow
	}
	n, fits := 0, 0
	for _, a := range append([]*item{it}, ahead...) {
		own := a.forMember(ma.pos).req
		if a.forMember(ma.pos).err != nil || a.entry.Index > ma.m.AppliedMin {
			return false
		}
		if !apply.WritesKeys(own.Kind) {
			continue
		}
		switch g := ma.cur.peek(n); {
		case g == nil || g.hole:
			return false
		case couldWrite(own, g):
			fits++
		case !names(own, g):
			return false
		}
		n++
	}
	return fits > 0 && ma.cur.peek(n) == nil && !ma.cur.hole
}

// nearUnknown is within how many entries ahead one that does not decode may have written the records.
const nearUnknown = 8

// enoughToSkip is how many entries have to fit later records before records that none of them can have written are
// skipped.
const enoughToSkip = 3
