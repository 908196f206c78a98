package replay

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// hold predicts the effect of a key-writing entry and compares it with the next records of the database.
func (s *sim) hold(it *item, ahead []*item) Outcome {
	p := s.Evaluate(it.req)
	next := s.cur.peek(0)
	if s.leavesOut(it, p, next) && s.auth.earlyJump(it) {
		p = s.Evaluate(it.req)
	}
	o := s.matcher.match(it, p, ahead)
	// A refusal that only a raised auth revision explains may stem from a restart whose publish entry comes later.
	if o.State == Missing && s.auth.earlyJump(it) {
		if q := s.Evaluate(it.req); q.Result == apply.Refused {
			p = q
			o = s.matcher.match(it, p, ahead)
		}
	}
	if o.State == Applied && !p.Sure && !s.KeysKnown && next.deletes() {
		o.State, o.Detail = OutsideHistory, "what unreadable pages hold decides whether these deletes are its own"
	}
	if h := it.req.Header; o.State == Applied && o.Rev > 0 && h.Username != "" && h.AuthRevision > 0 &&
		!next.deletes() && s.keepsChecks() {
		s.res.AuthAtMost, s.authMoved = Stamp{Index: it.entry.Index, AuthRevision: h.AuthRevision}, false
	}
	s.writeUnderNoAlarm(it.entry.Index, &o, next)
	o.Wrongly = o.State == Refused && o.Reason == ReasonOldAuth && s.auth.wouldApply(it)
	if it.req.LeaseRevoke != nil {
		s.leases.noteRevoke(it)
		s.leases.noteLeaseOp(it, it.req.LeaseRevoke.ID)
		s.leases.noteOutcome(it, o)
	}
	if it.req.LeaseRevoke != nil && (o.State == Applied || o.State == OutsideHistory) {
		s.touch(it, leaseKey(it.req.LeaseRevoke.ID))
		delete(s.Leases, it.req.LeaseRevoke.ID)
	}
	if (o.State == Applied || o.State == OutsideHistory) && next.unnamed() && keysUnnamed(it.req) {
		o.keys = next.keysAt(o.Rev)
	}
	if o.State == Applied && o.Rev > 0 {
		s.wrote = it.entry.Index
	}
	if o.Rev > 0 {
		s.res.LastWrite = it.entry.Index
		s.saved, s.auth.authSeen, s.leases.leaseSeen = it.entry.Index, s.auth.authSeen[:0], s.leases.leaseSeen[:0]
	}
	return o
}

// leavesOut reports whether the revision that an entry should have written names none of its keys, so that another
// entry wrote it.
func (s *sim) leavesOut(it *item, p apply.Effect, g *group) bool {
	return len(p.Writes) > 0 && g != nil && !g.hole && g.main == s.Revision+1 && !names(it.req, g)
}

// matcher assigns the records of the database to the entries that wrote them.
type matcher struct {
	*subject
	leases *leaseWatch
	auth   *authWatch
	rights *rights
	// adrift is the first entry in unreadable pages that may or may not have written a revision, 0 when the count of
	// revisions is certain.
	adrift uint64
	// searches counts how often the log was searched in vain for a repeated stretch.
	searches int
	// absentees are entries without the effect that they must have had, bounded: they were not applied a second time.
	absentees []uint64
	// entry is what is being matched.
	entry *item
}

const maxAbsentees = 1000

func (ma *matcher) match(it *item, p apply.Effect, ahead []*item) Outcome {
	ma.entry = it
	g := ma.cur.peek(0)
	for g != nil && g.main <= ma.Revision {
		ma.extra(ma.cur.take())
		g = ma.cur.peek(0)
	}
	r := ma.Revision + 1
	here := g != nil && g.main == r
	if g != nil && g.hole || g == nil && ma.cur.hole {
		ma.KeysKnown = false // what the unreadable pages hold is not known from here on
		ma.drift(it, p, here)
	}
	if len(p.Writes) == 0 {
		if here && p.MayWrite && ma.wroteAnyway(it, p, g, ahead) {
			return ma.against(it, p, g)
		}
		if here && p.MayWrite && ma.inItsStead(it, p, g, ahead) {
			o := ma.inPlace(it, p, g)
			ma.notRefused(it, p)
			return o
		}
		if here && p.MayWrite && !p.Sure && ma.strayBefore(it, ahead) && !ma.writtenBy(ahead, 0, ma.cur.peek(1)) {
			return ma.afterStray(it, ahead)
		}
		if !p.Sure && it.entry.Index > ma.m.AppliedMin {
			return Outcome{State: NotApplied} // nothing shows that the member has applied this entry
		}
		if !p.Sure && !ma.KeysKnown {
			return Outcome{State: OutsideHistory, Detail: "what unreadable pages hold decides it"}
		}
		return Outcome{State: stateOf(p.Result), Reason: p.Reason, Open: !p.Sure}
	}
	switch {
	case here && matches(p.Writes, g) && (p.Sure || ma.wroteIt(p, ahead)):
		return ma.applied(g)
	case here && !p.Sure && ma.couldHaveWritten(it.req, g) && !ma.othersBy(it.req, g, ahead) && ma.wroteIt(p, ahead):
		return ma.applied(g)
	case here:
		return ma.resync(it, p, ahead)
	case g != nil && g.hole || g == nil && ma.cur.hole:
		ma.Revision = r
		ma.Keys.Write(p.Writes, apply.Key{Mod: r})
		return Outcome{State: OutsideHistory, Rev: r, Detail: "its revision is in an unreadable page"}
	}
	if g != nil {
		// There are no gaps between revisions above the compact revision, so the records of this one were lost.
		ma.Revision = r
		ma.Keys.Write(p.Writes, apply.Key{Mod: r})
		return Outcome{State: Contradicted, Rev: r,
			Detail: "the database has no record of this revision, but later ones"}
	}
	return ma.absent(it, p)
}

// absent: the database ends, or jumps over the revision, before this entry's effect.
func (ma *matcher) absent(it *item, p apply.Effect) Outcome {
	if it.entry.Index > ma.m.AppliedMin {
		return Outcome{State: NotApplied}
	}
	switch {
	case !p.Sure && !ma.KeysKnown:
		return Outcome{State: OutsideHistory, Detail: "what unreadable pages hold decides it"}
	case !p.Sure:
		return Outcome{State: NoEffect, Open: true, Detail: mayHaveNone}
	}
	return ma.missing(it, p)
}

// missing names the likely refusal if the member's final auth revision is higher than the log explains, and with that
// difference would have been above the header's here.
func (ma *matcher) missing(it *item, p apply.Effect) Outcome {
	if h := it.req.Header; ma.Auth.Known && ma.Auth.Enabled && h.AuthRevision > 0 && ma.m.HasDB() && !ma.outran() {
		log, have := ma.auth.plain.at(ma.m.AppliedMax), ma.m.DB.Auth.Revision
		if own := ma.auth.plain.at(it.entry.Index) + have - min(log, have); have > log && h.AuthRevision < own {
			return Outcome{State: Refused, Reason: ReasonOldAuth, AuthRevision: own,
				Detail: "inferred: the member's auth revision ended above what the log gives"}
		}
	}
	if len(ma.absentees) < maxAbsentees {
		ma.absentees = append(ma.absentees, it.entry.Index)
	}
	return Outcome{State: Missing, Detail: fmt.Sprintf("expected %d record(s) at revision %d", len(p.Writes),
		ma.Revision+1)}
}

// wouldApply reports whether the entry changes keys on a member with the auth revision that results from the log here.
// It is false if that is unknown.
func (aw *authWatch) wouldApply(it *item) bool {
	if !aw.res.AuthKnown {
		return false
	}
	raised := aw.Auth.Revision
	defer func() { aw.Auth.Revision = raised }()
	aw.Auth.Revision = aw.plain.at(it.entry.Index - 1)
	p := aw.Evaluate(it.req)
	return p.Sure && p.Result == apply.Applied && len(p.Writes) > 0
}

// applied accepts the group as this entry's effect.
func (ma *matcher) applied(g *group) Outcome {
	ma.cur.take()
	ma.Revision, ma.adrift = g.main, 0
	ma.absorb(g)
	return Outcome{State: Applied, Rev: g.main, Sig: g.sig()}
}

// wroteIt decides for an entry with an uncertain outcome that can have written the next records. It did, unless later
// entries fit the records better without it.
func (ma *matcher) wroteIt(p apply.Effect, ahead []*item) bool {
	with, without := ma.fit(ahead, 1), ma.fit(ahead, 0)
	if with.misfits != without.misfits {
		return with.misfits < without.misfits
	}
	if with.matched+1 != without.matched {
		return with.matched+1 > without.matched
	}
	// Of several equal entries the first one wrote, unless its conditions contradict that or a later one must have.
	return p.Result != apply.NoEffect && !ma.laterMustHave(p, ahead)
}

// fit is how well entries fit records: matched entries found their records, misfits did not although they must have
// written some.
type fit struct{ misfits, matched int }

// fit assigns the records from the n-th group on to the first entries ahead that can have written them.
func (ma *matcher) fit(ahead []*item, n int) fit { return ma.assign(ahead, n, false) }

// assign is fit. With altered, records after the first group that no entry ahead can have written are those of the next
// entry that names their key: they were altered.
func (ma *matcher) assign(ahead []*item, n int, altered bool) (f fit) {
	granted := map[int64]bool{}
	for i, a := range ahead {
		own := ma.versionFor(a, ma.cur.peek(n))
		if g := own.req.LeaseGrant; g != nil {
			granted[g.ID] = true
		}
		if !apply.WritesKeys(own.req.Kind) {
			continue
		}
		if own.entry.Index > ma.m.AppliedMin {
			break
		}
		g := ma.cur.peek(n)
		switch {
		case g != nil && ma.couldWriteLater(own.req, g, ahead[:i]):
			n++
			f.matched++
		case !conditional(own.req), putsWith(own.req, granted):
			f.misfits++
		case altered && n > 0 && g != nil && names(own.req, g) && !ma.writtenBy(ahead, i+1, g):
			n++
		}
	}
	return f
}

// writtenBy reports whether any of the entries ahead, from one on, can have written the records.
func (ma *matcher) writtenBy(ahead []*item, from int, g *group) bool {
	for i := from; i < len(ahead); i++ {
		own := ma.versionFor(ahead[i], g)
		if apply.WritesKeys(own.req.Kind) && ma.couldWriteLater(own.req, g, ahead[:i]) {
			return true
		}
	}
	return false
}

// versionFor returns the entry of the member's log, or the entry of another log in its place if only that can have
// written the records: the member may have executed it, and its log was altered later.
func (ma *matcher) versionFor(a *item, g *group) *item {
	own := a.forMember(ma.pos)
	if len(a.others) == 0 || g == nil || own.err == nil && couldWrite(own.req, g) {
		return own
	}
	for _, v := range a.versions() {
		if v.entry.Term == own.entry.Term && v.err == nil && apply.WritesKeys(v.req.Kind) && couldWrite(v.req, g) {
			return v
		}
	}
	return own
}

// couldWriteLater is couldWrite for an entry ahead, after some others: a lease revoke deletes keys that have the lease
// now, or that an entry before it may put.
func (ma *matcher) couldWriteLater(r *dumplog.Request, g *group, between []*item) bool {
	if could := couldWrite(r, g); !could || r.LeaseRevoke == nil || !ma.KeysKnown {
		return could
	}
	return !slices.ContainsFunc(g.records, func(x record) bool {
		if k := ma.Keys.Get(x.key); k != nil && (k.Unsure || ma.Keys.Attached(r.LeaseRevoke.ID, x.key)) {
			return false
		}
		puts := func(a *item) bool { return lastPut(a.forMember(ma.pos).req, x.key) != nil }
		return !slices.ContainsFunc(between, puts) && (ma.entry == nil || !puts(ma.entry))
	})
}

// putsWith reports whether the request is a put that only a missing lease could prevent, and the lease was just
// granted.
func putsWith(r *dumplog.Request, granted map[int64]bool) bool {
	return r.Put != nil && granted[r.Put.Lease] && !r.Put.IgnoreLease && !r.Put.IgnoreValue && r.Header.Username == ""
}

// wroteAnyway: an entry that should have had no effect fits the next records. It wrote them, unless a later entry fits
// them too and the prediction is certain, or an entry may have written them that no log holds any more.
func (ma *matcher) wroteAnyway(it *item, p apply.Effect, g *group, ahead []*item) bool {
	if !ma.couldHaveWritten(it.req, g) {
		return false
	}
	if !p.Sure {
		return !ma.othersBy(it.req, g, ahead) && ma.wroteIt(p, ahead)
	}
	return !ma.ofLost(g) && !ma.writtenBy(ahead, 0, g)
}

// against records an effect that the rules forbid. When the reason was the auth revision, the member's own was lower
// than modelled.
func (ma *matcher) against(it *item, p apply.Effect, g *group) Outcome {
	ma.rights.beyondRights(it, p)
	o := ma.applied(g)
	if p.Sure {
		o.Detail = "although the rules leave it without effect"
		if p.Result == apply.Refused {
			o.Detail = "although the rules refuse it: " + string(p.Reason)
		}
		o.Against = ma.KeysKnown && p.Reason != ReasonOldAuth
		o.excluded = o.Against && p.Result != apply.Refused
	}
	ma.notRefused(it, p)
	return o
}

// notRefused lowers the modelled auth revision when an entry had an effect that it would have refused.
func (ma *matcher) notRefused(it *item, p apply.Effect) {
	if p.Reason == ReasonOldAuth && p.Rule == nil {
		ma.auth.lowerDelta(it.req.Header.AuthRevision)
	}
}

// inItsStead reports whether an uncertain entry should have had no effect, but records in its place name its keys and
// no entry ahead can have written them.
func (ma *matcher) inItsStead(it *item, p apply.Effect, g *group, ahead []*item) bool {
	return !p.Sure && ma.KeysKnown && names(it.req, g) && !couldWrite(it.req, g) &&
		!(g.records[0].bad && ma.othersMayHave(ahead)) && (ma.stray(ahead) || ma.lastOnes(it, ahead))
}

// extra records a group of records that no entry explains.
func (ma *matcher) extra(g *group) {
	ma.res.Extra = append(ma.res.Extra, g.main)
	if len(ma.res.strays) < maxStrays && !g.hole && ma.entry != nil {
		at := entryID{Index: ma.entry.entry.Index, Term: ma.entry.entry.Term}
		ma.res.strays = append(ma.res.strays, stray{rev: g.main, sig: g.sig(), at: at})
	}
	ma.leases.noteGone(g)
	ma.Revision = max(ma.Revision, g.main)
	ma.absorb(g)
}

// undecoded decides whether an entry that does not decode wrote the next records: the entries ahead fit those after
// them better, or none of them writes.
func (ma *matcher) undecoded(ahead []*item) Outcome {
	ma.entry = nil
	g := ma.cur.peek(0)
	if g == nil || g.main != ma.Revision+1 {
		return Outcome{State: NoEffect, Open: true}
	}
	without, with := ma.fit(ahead, 0), ma.fit(ahead, 1)
	if with.misfits > without.misfits || with.misfits == without.misfits && with.matched <= without.matched &&
		without.matched > 0 {
		return Outcome{State: NoEffect, Open: true}
	}
	ma.cur.take()
	ma.Revision, ma.adrift = g.main, 0
	ma.leases.noteGone(g)
	ma.absorb(g)
	if len(ma.res.unknownWrites) < maxAbsentees {
		ma.res.unknownWrites = append(ma.res.unknownWrites, ma.now)
	}
	return Outcome{State: OutsideHistory, Rev: g.main, Detail: "it does not decode, and these records are in its place"}
}

// lookahead bounds how far resync searches in entries and in revisions.
const lookahead = 64

// resync decides what happened if the next records are not this entry's. Either they belong to a later entry (this one
// is missing), or this entry's come later (those before are extra), or they replace this entry's (contradicted).
func (ma *matcher) resync(it *item, p apply.Effect, ahead []*item) Outcome {
	g := ma.cur.peek(0)
	if ma.adrift > 0 {
		return ma.realign(it, ahead)
	}
	if !p.Sure {
		return ma.resyncUnsure(it, p, ahead)
	}
	if without, with := ma.fit(ahead, 0), ma.fit(ahead, 1); with.misfits < without.misfits ||
		with.misfits == without.misfits && with.matched > without.matched &&
			(sameNames(p.Writes, g) || partOf(p.Writes, g)) {
		return ma.altered(it, p, g) // the entries after it find their records only if these belong to it
	}
	if partOf(p.Writes, g) && ma.deletedUnseen(p.Writes, g) {
		return ma.inPlace(it, p, g)
	}
	if ma.writtenBy(ahead, 0, g) {
		return ma.missing(it, p)
	}
	if it.req.Txn != nil && firstFew(p.Writes, g) {
		return ma.altered(it, p, g)
	}
	if ma.repeated(it, ahead) {
		return ma.match(it, ma.Evaluate(it.req), ahead)
	}
	for j := 1; j < lookahead; j++ {
		if later := ma.cur.peek(j); later != nil && !sameKeys(p.Writes, g) && matches(p.Writes, later) {
			for range j {
				ma.extra(ma.cur.take())
			}
			return ma.applied(later)
		}
	}
	return ma.inPlace(it, p, g)
}

// names reports whether the request puts or deletes the first key of the records by name. For a record that does not
// decode it may be any key.
func names(r *dumplog.Request, g *group) bool {
	first := &g.records[0]
	found := first.bad
	r.EachOp(func(op dumplog.RequestOp) {
		found = found || op.Put != nil && string(op.Put.Key) == first.key && !first.deleted() ||
			op.DeleteRange != nil && first.deleted() &&
				apply.InRange(first.key, op.DeleteRange.Key, op.DeleteRange.RangeEnd)
	})
	return found
}

// firstFew reports whether the records are only the first of those that the entry writes.
func firstFew(ws []apply.Write, g *group) bool {
	n := len(g.records)
	return n < len(ws) && matches(ws[:n], g)
}

// partOf reports whether the records are some of those that the entry writes, each at its place.
func partOf(ws []apply.Write, g *group) bool {
	return !slices.ContainsFunc(g.records, func(r record) bool {
		return r.rev.Sub >= int64(len(ws)) || ws[r.rev.Sub].Key != r.key || ws[r.rev.Sub].Delete != r.del
	})
}

// deletedUnseen reports whether a key that an entry deletes, without a record in the group, was gone after it: its next
// record creates it again.
func (ma *matcher) deletedUnseen(ws []apply.Write, g *group) bool {
	gone := map[string]bool{}
	for _, w := range ws {
		if w.Delete && !slices.ContainsFunc(g.records, func(x record) bool { return x.key == w.Key }) {
			gone[w.Key] = true
		}
	}
	for j := 1; j < lookahead && len(gone) > 0; j++ {
		next := ma.cur.peek(j)
		if next == nil || next.hole {
			return false
		}
		for i := range next.records {
			r := &next.records[i]
			if gone[r.key] && !r.bad && !r.del && r.version == 1 {
				return true
			}
			delete(gone, r.key)
		}
	}
	return false
}

// altered accepts records as those of an entry although it writes different ones.
func (ma *matcher) altered(it *item, p apply.Effect, g *group) Outcome {
	if it.req.Txn == nil || !firstFew(p.Writes, g) {
		return ma.inPlace(it, p, g)
	}
	o := ma.applied(g)
	o.State, o.Partial = Contradicted, true
	o.Detail = fmt.Sprintf("only the first %d of the transaction's %d records are there", len(g.records), len(p.Writes))
	return o
}

// inPlace accepts records in the place of the entry's own that no entry ahead explains. If the entry cannot have
// written them, they were changed later, and the later entries worked on what the entry did write.
func (ma *matcher) inPlace(it *item, p apply.Effect, g *group) Outcome {
	detail := "the records at its revision are none that this entry could write"
	if sameKeys(p.Writes, g) {
		detail = "the records at its revision name the same keys with another value or lease"
	}
	o := Outcome{State: Contradicted, Rev: g.main, Sig: g.sig(), Detail: detail,
		otherKeys: !sameKeys(p.Writes, g)}
	ma.cur.take()
	ma.Revision = g.main
	if p.Sure && len(p.Writes) > 0 && (partOf(p.Writes, g) || !couldWrite(it.req, g)) {
		ma.Keys.Write(p.Writes, apply.Key{Mod: g.main})
	} else {
		ma.absorb(g)
	}
	return o
}
