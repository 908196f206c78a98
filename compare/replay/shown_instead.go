package replay

import "slices"

// otherEffect is the detail of an entry whose own version the database contradicts.
const otherEffect = "its database holds the effect of the entry in another log instead"

// shownInstead corrects what is not known of an entry that another log holds in another version: the database of a
// member whose model begins later may hold, at the revision of the effect on another member, just that effect. If the
// entry in its own log cannot have written it, and none of those ahead in that log, the member has applied the other
// version, and its log was altered.
func (w *walker) shownInstead(it *item, ahead []*item, outcomes []Outcome) {
	if len(it.others) == 0 {
		return
	}
	for j, o := range outcomes {
		if o.State != Applied || o.Sig == 0 || !holdsEntry(w.r.Members[j].Member, it.forMember(j).entry.Term,
			it.entry.Index) {
			continue
		}
		for i := range outcomes {
			if s := outcomes[i].State; s != Unknown && s != OutsideHistory ||
				!w.r.showsInstead(i, it, it.forMember(j), ahead, o) {
				continue
			}
			if w.sims[i] != nil {
				w.r.Members[i].Counts[outcomes[i].State]--
				w.r.Members[i].Counts[Contradicted]++
			}
			outcomes[i] = Outcome{State: Contradicted, Rev: o.Rev, Sig: o.Sig, Detail: otherEffect}
		}
	}
}

// showsInstead reports whether the database of a member holds the effect of another version of an entry in its log. If
// its log holds an entry that can have that effect further on, one of the logs may only be renumbered.
func (r *Result) showsInstead(pos int, it, other *item, ahead []*item, effect Outcome) bool {
	m, own := r.Members[pos].Member, it.forMember(pos)
	index := own.entry.Index
	if own == other || own.err != nil || own.entry.Term != other.entry.Term || index > m.AppliedMin || !m.HasDB() ||
		m.DB.KV == nil || !holdsEntry(m, own.entry.Term, index) || !r.wroteItself(pos, index) {
		return false
	}
	lv := &logView{m: m, pos: pos, compacted: m.CompactRevision()}
	return slices.ContainsFunc(slices.Collect(lv.groups(effect.Rev, effect.Rev)), func(g *group) bool {
		return !g.hole && g.sig() == effect.Sig && !couldWrite(own.req, g) &&
			!slices.ContainsFunc(ahead, func(a *item) bool { return couldWrite(a.forMember(pos).req, g) })
	})
}
