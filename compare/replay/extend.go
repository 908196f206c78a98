package replay

import (
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxPassed is how many revisions that fit no entry are skipped at one place when a place is moved down the log.
// Otherwise an altered record would prevent the judgement of the entries before it.
const maxPassed = 2

// extend moves a place down the log as far as entries and records match going backwards: it assigns the newest free
// revision to each entry that can have written it. A mistake is harmless, since no revision is between the entry and
// the real writer. The new place is before an entry that fits its records by more than a key.
func (lv *logView) extend(ctx context.Context, w *writers, at place) place {
	for ctx.Err() == nil {
		at = lv.passQuiet(ctx, w, at)
		if at.writes == 0 || at.rev <= lv.floor() {
			break
		}
		b := lv.newBackwards(ctx, w, at)
		if !b.walk() {
			break
		}
		at = b.best
	}
	if low, ok := lv.overFloor(ctx, w, at); ok {
		return low
	}
	return at
}

// overFloor is the place at the compact revision below another place, where entries and records between the two do not
// match: after the entry that wrote what is left of that revision, if it wrote nothing above.
func (lv *logView) overFloor(ctx context.Context, w *writers, upto place) (place, bool) {
	if upto.rev < lv.floor() || upto.rev-lv.floor() > maxWindow || upto.writes == 0 {
		return place{}, false
	}
	win := &window{s: lv, writes: max(upto.writes-maxWindow+1, 1)}
	win.items = lv.writersFrom(ctx, w, win.writes, upto.writes)
	at, ok := win.atFloor()
	if !ok || upto.rev == lv.floor() { // nothing was written since
		return at, ok
	}
	above := slices.Collect(lv.groups(lv.floor()+1, upto.rev))
	// wroteBelow reports whether an entry certainly wrote, and nothing above the compact revision.
	wroteBelow := func(it *item) bool {
		return PlainPut(it.req) && lv.alwaysWrites(it.req, it.entry.Index) && !wroteOneOf(it.req, above)
	}
	last := int(at.writes - win.writes)
	if wroteBelow(win.items[last]) {
		return at, true
	}
	// A transaction may have had no effect, and the same one before the log begins: then those before it wrote above.
	return at, !wroteOneOf(win.items[last].req, above) && slices.ContainsFunc(win.items[:last], wroteBelow)
}

// wroteOneOf reports whether a request may have written one of some groups, as far as they can be read.
func wroteOneOf(r *dumplog.Request, groups []*group) bool {
	return slices.ContainsFunc(groups, func(g *group) bool { return g.hole || names(r, g) })
}

// passQuiet moves a place down the log, past the entries before it that certainly write nothing.
func (lv *logView) passQuiet(ctx context.Context, w *writers, at place) place {
	atOnce := int64(1)
	if len(lv.alarmed) > 0 {
		atOnce = maxWindow
	}
	for at.writes > 0 && ctx.Err() == nil {
		items := lv.writersFrom(ctx, w, max(at.writes-atOnce+1, 1), at.writes)
		if len(items) == 0 {
			break
		}
		for _, it := range slices.Backward(items) {
			if !lv.refusedByAlarm(it.req, it.entry.Index).Certain() {
				at.index = min(at.index, it.entry.Index)
				return at
			}
			at.index, at.writes = min(at.index, it.entry.Index-1), at.writes-1
		}
	}
	return at
}

// backwards is a walk down the log, from a place at which the revision of the database is known.
type backwards struct {
	s      *logView
	items  []*item
	groups []*group
	// rev is the newest revision that is not taken yet.
	rev  int64
	from int64
	best place
	// guessed is true while the last entry that was given a revision fits it by no more than a key. last is the place
	// of that entry among the items.
	guessed bool
	last    int
	// exact is true while every entry since the best place was given a revision. guesses are those that fit by no more
	// than a key.
	exact   bool
	guesses []*group
	// stamp is the lowest auth revision in the header of an entry that took effect above, 0 for none. No auth revision
	// before it was higher.
	stamp uint64
}

func (lv *logView) newBackwards(ctx context.Context, w *writers, at place) *backwards {
	from := max(at.writes-maxWindow+1, 1)
	low := max(lv.floor(), at.rev-2*maxWindow)
	b := &backwards{s: lv, items: lv.writersFrom(ctx, w, from, at.writes),
		groups: slices.Collect(lv.groups(low+1, at.rev)), rev: at.rev, from: from, best: at}
	for _, it := range lv.writersFrom(ctx, w, at.writes+1, at.writes+1) {
		for g := range lv.groups(at.rev+1, at.rev+1) {
			if it.req.Put != nil && !keeps(it.req.Put) && !g.hole && couldWrite(it.req, g) {
				b.noteStamp(it.req)
			}
		}
	}
	return b
}

// at is the group of a revision, nil if it cannot be read completely.
func (b *backwards) at(rev int64) *group {
	i, ok := slices.BinarySearchFunc(b.groups, rev, func(g *group, rev int64) int { return int(g.main - rev) })
	if !ok || b.groups[i].hole {
		return nil
	}
	return b.groups[i]
}

// walk reports whether it came to a lower place.
func (b *backwards) walk() bool {
	start := b.best
	b.exact, b.last = true, len(b.items)
	for i := len(b.items) - 1; i >= 0 && (b.rev > b.s.floor() || b.guessed); i-- {
		it := b.items[i]
		if it.entry.Index > start.index {
			b.last = i
			continue
		}
		rev, fits := b.match(it.req)
		fits = fits && !b.refuted(i, b.at(rev))
		switch {
		case fits && (b.tellingAt(i, b.at(rev)) || b.wroteAgain(it, rev)):
			b.rev = rev - 1
			b.noteStamp(it.req)
			b.moveBelow(i)
		case fits:
			b.exact = b.exact && rev == b.rev
			b.guesses = append(b.guesses, b.at(rev))
			b.rev, b.guessed, b.last = rev-1, true, i
		case b.guessed && b.took(i):
			b.noteStamp(it.req)
			b.moveBelow(i)
		case b.wroteNext(it), b.onlyOneToPut(i):
			b.rev-- // with the wrong content
			b.moveBelow(i)
		case b.guessed && it.req.Put != nil:
			return b.best.index < start.index // an entry after it may have taken the revision that is this one's
		case b.alwaysWrites(it):
			b.rev-- // it wrote a revision with the wrong content
		default:
			b.exact = false
		}
	}
	return b.best.index < start.index
}

func (b *backwards) noteStamp(r *dumplog.Request) {
	if h := r.Header; h.Username != "" && h.AuthRevision > 0 && (b.stamp == 0 || h.AuthRevision < b.stamp) {
		b.stamp = h.AuthRevision
	}
}

// wroteNext reports whether an entry wrote the newest revision that is not taken, although that holds something else.
// It always writes, and the entries above it are as many as the revisions above. It cannot have written any of these:
// it names a key of that revision and none of theirs, or none of them is what a put leaves. Or all of them are known,
// that revision has its value under another key, and none below can be its own.
func (b *backwards) wroteNext(it *item) bool {
	g := b.at(b.rev)
	switch {
	case !b.exact || g == nil:
		return false
	case names(it.req, g) && (b.alwaysWrites(it) || b.putsAgain(it, g)) &&
		!slices.ContainsFunc(b.guesses, func(x *group) bool { return couldWrite(it.req, x) || names(it.req, x) }):
		return true
	case len(b.guesses) == 0 && b.alwaysWrites(it) && putsValue(it.req.Put, g) && !b.belowMayBe(it, g):
		return true
	}
	return len(b.guesses) > 0 && b.alwaysWrites(it) && !slices.ContainsFunc(b.guesses, (*group).isPut)
}

// onlyOneToPut reports whether an entry wrote the newest revision that is not taken, although that holds another value:
// it is a put of its key with its lease that nothing can have refused, no entry after it puts the key, and no other
// revision can be its own.
func (b *backwards) onlyOneToPut(i int) bool {
	it, g := b.items[i], b.at(b.rev)
	p := it.req.Put
	if it.req.Kind != dumplog.KindPut || keeps(p) || g == nil || !g.isPut() || g.records[0].bad ||
		g.records[0].key != string(p.Key) || g.records[0].lease != p.Lease || !b.passes(it) ||
		!b.s.leaseWasThere(p.Lease, it.entry.Index) {
		return false
	}
	return !slices.ContainsFunc(b.guesses, func(x *group) bool { return couldWrite(it.req, x) }) &&
		!b.belowMayBe(it, g) && !slices.ContainsFunc(b.items[i+1:], func(o *item) bool {
		return o.err != nil || lastPut(o.req, g.records[0].key) != nil
	})
}

// belowMayBe reports whether an entry can have written a group below another one.
func (b *backwards) belowMayBe(it *item, below *group) bool {
	return slices.ContainsFunc(b.groups,
		func(g *group) bool { return g.main < below.main && (g.hole || couldWrite(it.req, g)) })
}

func (b *backwards) alwaysWrites(it *item) bool { return PlainPut(it.req) && b.passes(it) }

// passes reports whether nothing can have refused a request.
func (b *backwards) passes(it *item) bool {
	return b.s.alwaysWrites(it.req, it.entry.Index) || b.rootWrites(it)
}

// putsAgain reports whether an entry puts a key that it requires to exist, and that the group puts. If the group was
// there before it, the key existed, and it wrote a revision above.
func (b *backwards) putsAgain(it *item, g *group) bool {
	p := it.req.Put
	return it.req.Kind == dumplog.KindPut && keeps(p) && p.Lease == 0 && b.passes(it) &&
		slices.ContainsFunc(g.records, func(x record) bool { return x.key == string(p.Key) && !x.del })
}

// wroteAgain reports whether an entry certainly wrote the newest revision that is not taken: it puts a key that it
// requires to exist, and without an effect of it that revision would be from before it, so that the key existed.
func (b *backwards) wroteAgain(it *item, rev int64) bool {
	return b.exact && !b.guessed && rev == b.rev && b.putsAgain(it, b.at(rev))
}

// rootWrites reports whether nothing can have refused a put of user root: a later entry with no higher auth revision in
// its header took effect. A received snapshot can have brought a lower revision in between.
func (b *backwards) rootWrites(it *item) bool {
	h, index := it.req.Header, it.entry.Index
	return h.Username == apply.Root && b.stamp > 0 && h.AuthRevision >= b.stamp &&
		b.s.refusedByAlarm(it.req, index).Excluded() &&
		!slices.ContainsFunc(received(b.s.m), func(to uint64) bool { return to >= index })
}

// moveBelow makes the place before an item the best one.
func (b *backwards) moveBelow(i int) {
	b.guessed, b.exact, b.last, b.guesses = false, true, i, nil
	b.best = place{index: b.items[i].entry.Index - 1, rev: b.rev, writes: b.from + int64(i) - 1}
}

// took reports whether the revision that was given to the entry after it fits this one by more than a key: then this
// one wrote it. Both can have put the same keys, this one at the revision before: unless that is there, with another
// content, or a key of the group was not there before it.
func (b *backwards) took(i int) bool {
	g, r := b.at(b.rev+1), b.items[i].req
	fresh := func(x record) bool { return x.del || x.version == 1 }
	return g != nil && (b.at(b.rev) != nil || slices.ContainsFunc(g.records, fresh)) &&
		couldWrite(r, g) && b.guardFits(r, g) && b.tellingAt(i, g) && !b.refuted(i, g) && b.permittedAs(i)
}

// permittedAs reports whether an entry was not refused if the last one that was given a revision was not: nothing can
// have refused it, or both are requests of one user at one auth revision.
func (b *backwards) permittedAs(i int) bool {
	own, last := b.items[i].req.Header, b.items[b.last].req.Header
	return own.Username == last.Username && own.AuthRevision == last.AuthRevision || b.passes(b.items[i])
}

// refuted reports whether an entry cannot have written the group: those between it and the last one that was given a
// revision wrote nothing then, and one of them waits for just what the group holds.
func (b *backwards) refuted(i int, g *group) bool {
	return slices.ContainsFunc(b.items[i+1:b.last], func(it *item) bool { return writesAfter(it.req, g) })
}

// writesAfter reports whether a transaction writes if the group holds the newest records of the keys that it compares.
func writesAfter(r *dumplog.Request, g *group) bool {
	if r.Txn == nil || len(r.Txn.Compare) == 0 ||
		!slices.ContainsFunc(r.Txn.Success, func(op dumplog.RequestOp) bool { return op.Put != nil }) {
		return false
	}
	return !slices.ContainsFunc(r.Txn.Compare, func(c dumplog.Compare) bool {
		i := slices.IndexFunc(g.records, func(x record) bool { return x.key == string(c.Key) })
		if i < 0 || c.Target != apply.TargetMod || c.Result != apply.ResultEqual || len(c.RangeEnd) > 0 {
			return true
		}
		if g.records[i].del {
			return c.Num != 0
		}
		return c.Num != g.main
	})
}

// tellingAt is telling for an entry of the walk. A new key is significant only if no entry before it can have made the
// key: otherwise this one had no effect. A revoke fits by more than the keys if its lease was put on all of them.
func (b *backwards) tellingAt(i int, g *group) bool {
	r := b.items[i].req
	if r.LeaseRevoke != nil {
		return !slices.ContainsFunc(g.records, func(x record) bool { return b.leaseOn(i, x.key) != r.LeaseRevoke.ID })
	}
	return b.telling(r, g, false) || b.telling(r, g, true) &&
		!slices.ContainsFunc(b.items[:i], func(it *item) bool { return couldWrite(it.req, g) })
}

// leaseOn is the lease with which the last put before an item puts a key, 0 for none.
func (b *backwards) leaseOn(i int, key string) int64 {
	for _, it := range slices.Backward(b.items[:i]) {
		if p := lastPut(it.req, key); p != nil {
			return p.Lease
		}
	}
	return 0
}

// lastPut is the last put of a key in a request, nil if there is none.
func lastPut(r *dumplog.Request, key string) (last *dumplog.PutRequest) {
	r.EachOp(func(op dumplog.RequestOp) {
		if op.Put != nil && string(op.Put.Key) == key {
			last = op.Put
		}
	})
	return last
}

// match finds the newest revision not yet taken that the entry can have written; further down only where more than a
// key fits, and the entry after it was no guess.
func (b *backwards) match(r *dumplog.Request) (rev int64, ok bool) {
	passed := int64(maxPassed)
	if b.guessed {
		passed = 0
	}
	for off := range passed + 1 {
		g := b.at(b.rev - off)
		if g != nil && couldWrite(r, g) && b.guardFits(r, g) && (off == 0 || b.telling(r, g, false)) {
			return b.rev - off, true
		}
	}
	return 0, false
}

// guardFits compares the mod revisions in compares with the groups: the group of that revision holds the key, and no
// group between changes it. A transaction that lost a race names an older revision.
func (b *backwards) guardFits(r *dumplog.Request, g *group) bool {
	return guardFits(r, g, func(key string, rev int64) bool { return b.standsOn(key, rev, g.main) })
}

// standsOn reports whether a key can have had a mod revision right before another one, as far as the records show.
func (b *backwards) standsOn(key string, mod, before int64) bool {
	for i := len(b.groups) - 1; i >= 0; i-- {
		g := b.groups[i]
		if g.main >= before {
			continue
		}
		at := slices.IndexFunc(g.records, func(x record) bool { return x.key == key })
		switch {
		case at >= 0 && g.records[at].del:
			return mod == 0
		case at >= 0:
			return mod == g.main
		case g.main == mod:
			return false // the record of that revision is another key's
		}
	}
	return true
}

// telling reports whether the entry fits the records by more than a key: by a value, or by the revision or the version
// of its key. created is true if a new key is enough. A put that keeps the value fits every record of its key.
func (b *backwards) telling(r *dumplog.Request, g *group, created bool) bool {
	switch {
	case r.Kind == dumplog.KindPut:
		return !r.Put.IgnoreValue
	case r.Txn == nil:
		return false
	case len(r.Txn.Compare) == 0:
		return putsValueOf(r.Txn.Success, g) &&
			!slices.ContainsFunc(g.records, func(x record) bool { return x.del })
	}
	return slices.ContainsFunc(r.Txn.Compare, func(c dumplog.Compare) bool {
		if c.Result != apply.ResultEqual || len(c.RangeEnd) > 0 || c.Num == 0 && !created {
			return false
		}
		if c.Target != apply.TargetMod {
			told, fits := stateBefore(&c, g)
			return told && fits
		}
		i := slices.IndexFunc(g.records, func(x record) bool { return x.key == string(c.Key) })
		if i < 0 || c.Num == 0 {
			return i >= 0 && !g.records[i].del && g.records[i].version == 1
		}
		if c.Num <= b.s.floor() {
			return g.records[i].version > 1 || g.records[i].del // what the key was before is compacted
		}
		before := b.at(c.Num)
		return before != nil && slices.ContainsFunc(before.records,
			func(x record) bool { return x.key == string(c.Key) && !x.del })
	})
}

// putsValueOf reports whether operations put the value that a record of the group holds, in a branch that may be
// executed.
func putsValueOf(ops []dumplog.RequestOp, g *group) bool {
	return slices.ContainsFunc(ops, func(op dumplog.RequestOp) bool {
		if op.Txn != nil {
			then, orElse := branches(op.Txn)
			return then && putsValueOf(op.Txn.Success, g) || orElse && putsValueOf(op.Txn.Failure, g)
		}
		p := op.Put
		return p != nil && !p.IgnoreValue && slices.ContainsFunc(g.records, func(x record) bool {
			return !x.del && x.key == string(p.Key) && x.vhash == apply.SumOf(p.Value)
		})
	})
}

// putsValue reports whether the group is one record with the value of a put, of whatever key.
func putsValue(p *dumplog.PutRequest, g *group) bool {
	return len(p.Value) > 0 && g.isPut() && len(g.records) == 1 && g.records[0].vhash == apply.SumOf(p.Value)
}
