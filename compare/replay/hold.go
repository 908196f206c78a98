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
	o := s.match(it, p, ahead)
	// A refusal that only a raised auth revision explains may stem from a restart whose publish entry comes later.
	if o.State == Missing && s.earlyJump(it) {
		if q := s.Evaluate(it.req); q.Result == apply.Refused {
			p = q
			o = s.match(it, p, ahead)
		}
	}
	if o.State == Applied && !p.Sure && !s.KeysKnown && next.deletes() {
		o.State, o.Detail = OutsideHistory, "what unreadable pages hold decides whether these deletes are its own"
	}
	if h := it.req.Header; o.State == Applied && o.Rev > 0 && h.Username != "" && h.AuthRevision > 0 &&
		!next.deletes() && s.keepsChecks() {
		s.res.AuthAtMost = Stamp{Index: it.entry.Index, AuthRevision: h.AuthRevision}
	}
	o.Wrongly = o.State == Refused && o.Reason == ReasonOldAuth && s.wouldApply(it)
	if it.req.LeaseRevoke != nil {
		s.noteRevoke(it)
		s.noteLeaseOp(it, it.req.LeaseRevoke.ID)
		s.noteOutcome(it, o)
	}
	if it.req.LeaseRevoke != nil && (o.State == Applied || o.State == OutsideHistory) {
		s.touch(it, leaseKey(it.req.LeaseRevoke.ID))
		delete(s.Leases, it.req.LeaseRevoke.ID)
		o.keys = next.deletedAt(o.Rev)
	}
	if o.Rev > 0 {
		s.saved, s.authSeen, s.leaseSeen = it.entry.Index, s.authSeen[:0], s.leaseSeen[:0]
	}
	return o
}

func (s *sim) match(it *item, p apply.Effect, ahead []*item) Outcome {
	g := s.cur.peek(0)
	for g != nil && g.main <= s.Revision {
		s.extra(s.cur.take())
		g = s.cur.peek(0)
	}
	r := s.Revision + 1
	here := g != nil && g.main == r
	if g != nil && g.hole || g == nil && s.cur.hole {
		s.KeysKnown = false // what the unreadable pages hold is not known from here on
		s.drift(it, p, here)
	}
	if len(p.Writes) == 0 {
		if here && p.MayWrite && s.wroteAnyway(it, p, g, ahead) {
			return s.against(it, p, g)
		}
		if here && p.MayWrite && s.inItsStead(it, p, g, ahead) {
			o := s.inPlace(it, p, g)
			s.notRefused(it, p)
			return o
		}
		if !p.Sure && it.entry.Index > s.m.AppliedMin {
			return Outcome{State: NotApplied} // nothing shows that the member has applied this entry
		}
		if !p.Sure && !s.KeysKnown {
			return Outcome{State: OutsideHistory, Detail: "what unreadable pages hold decides it"}
		}
		return Outcome{State: stateOf(p.Result), Reason: p.Reason, Open: !p.Sure}
	}
	switch {
	case here && matches(p.Writes, g) && (p.Sure || s.wroteIt(p, ahead)):
		return s.applied(g)
	case here && !p.Sure && s.couldHaveWritten(it.req, g) && s.wroteIt(p, ahead):
		return s.applied(g)
	case here:
		return s.resync(it, p, ahead)
	case g != nil && g.hole || g == nil && s.cur.hole:
		s.Revision = r
		s.Keys.Write(p.Writes, apply.Key{Mod: r})
		return Outcome{State: OutsideHistory, Rev: r, Detail: "its revision is in an unreadable page"}
	}
	if g != nil {
		// There are no gaps between revisions above the compact revision, so the records of this one were lost.
		s.Revision = r
		s.Keys.Write(p.Writes, apply.Key{Mod: r})
		return Outcome{State: Contradicted, Rev: r,
			Detail: "the database has no record of this revision, but later ones"}
	}
	return s.absent(it, p)
}

// absent: the database ends, or jumps over the revision, before this entry's effect.
func (s *sim) absent(it *item, p apply.Effect) Outcome {
	if it.entry.Index > s.m.AppliedMin {
		return Outcome{State: NotApplied}
	}
	switch {
	case !p.Sure && !s.KeysKnown:
		return Outcome{State: OutsideHistory, Detail: "what unreadable pages hold decides it"}
	case !p.Sure:
		return Outcome{State: NoEffect, Open: true, Detail: "the rules allow both outcomes"}
	}
	return s.missing(it, p)
}

// missing names the likely refusal if the member's final auth revision is higher than the log explains, and with that
// difference would have been above the header's here.
func (s *sim) missing(it *item, p apply.Effect) Outcome {
	if h := it.req.Header; s.Auth.Known && s.Auth.Enabled && h.AuthRevision > 0 && s.m.HasDB() {
		log, have := s.plain.at(s.m.AppliedMax), s.m.DB.Auth.Revision
		if own := s.plain.at(it.entry.Index) + have - min(log, have); have > log && h.AuthRevision < own {
			return Outcome{State: Refused, Reason: ReasonOldAuth, AuthRevision: own,
				Detail: "inferred: the member's auth revision ended above what the log gives"}
		}
	}
	return Outcome{State: Missing, Detail: fmt.Sprintf("expected %d record(s) at revision %d", len(p.Writes),
		s.Revision+1)}
}

// wouldApply reports whether the entry changes keys on a member with the auth revision that results from the log here.
// It is false if that is unknown.
func (s *sim) wouldApply(it *item) bool {
	if !s.res.AuthKnown {
		return false
	}
	raised := s.Auth.Revision
	defer func() { s.Auth.Revision = raised }()
	s.Auth.Revision = s.plain.at(it.entry.Index - 1)
	p := s.Evaluate(it.req)
	return p.Sure && p.Result == apply.Applied && len(p.Writes) > 0
}

// applied accepts the group as this entry's effect.
func (s *sim) applied(g *group) Outcome {
	s.cur.take()
	s.Revision, s.adrift = g.main, 0
	s.absorb(g)
	return Outcome{State: Applied, Rev: g.main, Sig: g.sig()}
}

// wroteIt decides for an entry with an uncertain outcome that can have written the next records. It did, unless later
// entries fit the records better without it.
func (s *sim) wroteIt(p apply.Effect, ahead []*item) bool {
	with, without := s.fit(ahead, 1), s.fit(ahead, 0)
	if with.misfits != without.misfits {
		return with.misfits < without.misfits
	}
	if with.matched+1 != without.matched {
		return with.matched+1 > without.matched
	}
	// Of several equal entries the first one wrote, unless its conditions contradict that.
	return p.Result != apply.NoEffect
}

// fit is how well entries fit records: matched entries found their records, misfits did not although they must have
// written some.
type fit struct{ misfits, matched int }

// fit assigns the records from the n-th group on to the first entries ahead that can have written them.
func (s *sim) fit(ahead []*item, n int) (f fit) {
	granted := map[int64]bool{}
	for _, a := range ahead {
		own := a.forMember(s.pos)
		if g := own.req.LeaseGrant; g != nil {
			granted[g.ID] = true
		}
		if !apply.WritesKeys(own.req.Kind) {
			continue
		}
		if own.entry.Index > s.m.AppliedMin {
			break
		}
		g := s.cur.peek(n)
		switch {
		case g != nil && couldWrite(own.req, g):
			n++
			f.matched++
		case !conditional(own.req), putsWith(own.req, granted):
			f.misfits++
		}
	}
	return f
}

// putsWith reports whether the request is a put that only a missing lease could prevent, and the lease was just
// granted.
func putsWith(r *dumplog.Request, granted map[int64]bool) bool {
	return r.Put != nil && granted[r.Put.Lease] && !r.Put.IgnoreLease && !r.Put.IgnoreValue && r.Header.Username == ""
}

// wroteAnyway: an entry that should have had no effect fits the next records. It wrote them, unless a later entry fits
// them too and the prediction is certain.
func (s *sim) wroteAnyway(it *item, p apply.Effect, g *group, ahead []*item) bool {
	if !s.couldHaveWritten(it.req, g) {
		return false
	}
	if !p.Sure {
		return s.wroteIt(p, ahead)
	}
	for _, a := range ahead {
		if apply.WritesKeys(a.req.Kind) && couldWrite(a.forMember(s.pos).req, g) {
			return false
		}
	}
	return true
}

// against records an effect that the rules forbid. When the reason was the auth revision, the member's own was lower
// than modelled.
func (s *sim) against(it *item, p apply.Effect, g *group) Outcome {
	s.beyondRights(it, p)
	o := s.applied(g)
	if p.Sure {
		o.Detail = fmt.Sprintf("applied although the rules say: %s %s", stateOf(p.Result), p.Reason)
	}
	s.notRefused(it, p)
	return o
}

// notRefused lowers the modelled auth revision when an entry had an effect that it would have refused.
func (s *sim) notRefused(it *item, p apply.Effect) {
	if p.Reason == ReasonOldAuth && p.Rule == nil {
		s.lowerDelta(it.req.Header.AuthRevision)
	}
}

// inItsStead reports whether an uncertain entry should have had no effect, but records in its place name its keys and
// no entry ahead can have written them.
func (s *sim) inItsStead(it *item, p apply.Effect, g *group, ahead []*item) bool {
	return !p.Sure && s.KeysKnown && names(it.req, g) && !couldWrite(it.req, g) && s.stray(ahead)
}

// extra records a group of records that no entry explains.
func (s *sim) extra(g *group) {
	s.res.Extra = append(s.res.Extra, g.main)
	s.noteGone(g)
	s.Revision = max(s.Revision, g.main)
	s.absorb(g)
}

// lookahead bounds how far resync searches in entries and in revisions.
const lookahead = 64

// resync decides what happened if the next records are not this entry's. Either they belong to a later entry (this one
// is missing), or this entry's come later (those before are extra), or they replace this entry's (contradicted).
func (s *sim) resync(it *item, p apply.Effect, ahead []*item) Outcome {
	g := s.cur.peek(0)
	if s.adrift > 0 {
		return s.realign(it, ahead)
	}
	if !p.Sure {
		return s.resyncUnsure(it, p, ahead)
	}
	if without, with := s.fit(ahead, 0), s.fit(ahead, 1); with.misfits < without.misfits ||
		with.misfits == without.misfits && with.matched > without.matched && sameKeys(p.Writes, g) {
		return s.altered(it, p, g) // the entries after it find their records only if these belong to it
	}
	for _, a := range ahead {
		if apply.WritesKeys(a.req.Kind) && couldWrite(a.forMember(s.pos).req, g) {
			return s.missing(it, p)
		}
	}
	if it.req.Txn != nil && firstFew(p.Writes, g) {
		return s.altered(it, p, g)
	}
	if s.repeated(it, ahead) {
		return s.match(it, s.Evaluate(it.req), ahead)
	}
	for j := 1; j < lookahead; j++ {
		if later := s.cur.peek(j); later != nil && !sameKeys(p.Writes, g) && matches(p.Writes, later) {
			for range j {
				s.extra(s.cur.take())
			}
			return s.applied(later)
		}
	}
	return s.inPlace(it, p, g)
}

// resyncUnsure is resync for an entry that may have had no effect. The next records belong to a later entry, unless
// none can have written them and the entries ahead fit the records after them. Then they replace this entry's if they
// name its keys; else they are extra.
func (s *sim) resyncUnsure(it *item, p apply.Effect, ahead []*item) Outcome {
	noEffect := Outcome{State: NoEffect, Open: true, Detail: "the rules allow both outcomes"}
	switch {
	case !s.KeysKnown:
		return Outcome{State: OutsideHistory, Detail: "what unreadable pages hold decides it"}
	case !s.stray(ahead):
		return noEffect
	}
	g := s.cur.peek(0)
	if names(it.req, g) {
		return s.inPlace(it, p, g)
	}
	for _, a := range ahead[:min(len(ahead), enoughToSkip)] {
		if names(a.forMember(s.pos).req, g) {
			return noEffect // the record is for that entry's keys
		}
	}
	s.extra(s.cur.take())
	return s.match(it, s.Evaluate(it.req), ahead)
}

// stray reports whether the entries ahead fit the records after the next ones, and not the next ones themselves: no
// entry wrote these.
func (s *sim) stray(ahead []*item) bool {
	without, with := s.fit(ahead, 0), s.fit(ahead, 1)
	switch {
	case with.misfits != without.misfits:
		return with.misfits < without.misfits
	case without.matched == 0:
		return with.matched >= enoughToSkip
	}
	return with.matched >= without.matched+enoughToSkip
}

// enoughToSkip is how many entries have to fit later records before records that none of them can have written are
// skipped.
const enoughToSkip = 3

// names reports whether the request puts or deletes the first key of the records by name. For a record that does not
// decode it may be any key.
func names(r *dumplog.Request, g *group) bool {
	found := g.records[0].bad
	r.EachOp(func(op dumplog.RequestOp) {
		found = found || op.Put != nil && string(op.Put.Key) == g.records[0].key && !g.records[0].del ||
			op.DeleteRange != nil && g.records[0].del && apply.InRange(g.records[0].key, op.DeleteRange.Key,
				op.DeleteRange.RangeEnd)
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

// altered accepts records as those of an entry although it writes different ones.
func (s *sim) altered(it *item, p apply.Effect, g *group) Outcome {
	if it.req.Txn == nil || !firstFew(p.Writes, g) {
		return s.inPlace(it, p, g)
	}
	o := s.applied(g)
	o.State, o.Partial = Contradicted, true
	o.Detail = fmt.Sprintf("only the first %d of the transaction's %d records are there", len(g.records), len(p.Writes))
	return o
}

// inPlace accepts records in the place of the entry's own that no entry ahead explains. If the entry cannot have
// written them, they were changed later, and the later entries worked on what the entry did write.
func (s *sim) inPlace(it *item, p apply.Effect, g *group) Outcome {
	detail := "the records at its revision are none that this entry could write"
	if sameKeys(p.Writes, g) {
		detail = "the records at its revision name the same keys with another value or lease"
	}
	o := Outcome{State: Contradicted, Rev: g.main, Sig: g.sig(), Detail: detail}
	s.cur.take()
	s.Revision = g.main
	if p.Sure && len(p.Writes) > 0 && (partOf(p.Writes, g) || !couldWrite(it.req, g)) {
		s.Keys.Write(p.Writes, apply.Key{Mod: g.main})
	} else {
		s.absorb(g)
	}
	return o
}
