package replay

import "slices"

// Which entry wrote some records may be uncertain, and the models of two members may decide it differently: of two
// equal requests, one model takes the first for the writer and the other model the second. If both databases hold the
// same records at that revision, before and after it, the members did not end differently.

// recordsBefore and recordsAfter are how many revisions around an effect have to be equal, as far as they are not
// compacted.
const (
	recordsBefore = 2
	recordsAfter  = 8
)

// maxAttributions bounds how often records are compared: members that have parted differ at every later entry.
const maxAttributions = 1000

// onlyAttributed reports whether the outcomes differ only in the entry that is taken for the writer of some records.
func (w *walker) onlyAttributed(outcomes []Outcome) bool {
	differ := false
	for i, o := range outcomes {
		switch o.State {
		case Unknown, NotApplied, OutsideHistory:
			continue
		case Applied:
			if o.Against || o.Partial {
				return false
			}
			continue
		case NoEffect, Refused:
			if o.Wrongly {
				return false
			}
		default:
			return false
		}
		for j, other := range outcomes {
			if other.State != Applied || other.Sig == 0 {
				continue
			}
			if !w.mayHoldAt(i, other.Rev) || !w.r.sameAround(i, j, other.Rev) {
				return false
			}
			differ = true
		}
	}
	return differ && w.oneEffect(outcomes)
}

// mayHoldAt reports whether the model of a member has come so far that its database may hold the effect at a revision:
// the next one, or one before it. The revision of a member that lacks writes is lower.
func (w *walker) mayHoldAt(i int, rev int64) bool {
	s := w.sims[w.reps[i]]
	if s == nil || rev > s.Revision+1 || w.attributions >= maxAttributions {
		return false
	}
	w.attributions++
	return true
}

// oneEffect reports whether all members that applied the entry hold the same effect.
func (w *walker) oneEffect(outcomes []Outcome) bool {
	applied := slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return o.State != Applied })
	return !slices.ContainsFunc(applied, func(o Outcome) bool { return o.Sig != applied[0].Sig })
}

// sameAround reports whether the databases of two members hold the same records at a revision, at those before it, and
// at some after it.
func (r *Result) sameAround(i, j int, rev int64) bool {
	a, b := r.Members[i].Member, r.Members[j].Member
	if !a.HasDB() || !b.HasDB() || a.DB.KV == nil || b.DB.KV == nil {
		return false
	}
	from := max(rev-recordsBefore, a.CompactRevision()+1, b.CompactRevision()+1, 1)
	to := min(rev+recordsAfter, a.CurrentRevision(), b.CurrentRevision())
	if from > rev || to <= rev {
		return false
	}
	x := slices.Collect((&logView{m: a, pos: i}).groups(from, to))
	y := slices.Collect((&logView{m: b, pos: j}).groups(from, to))
	return int64(len(x)) == to-from+1 && slices.EqualFunc(x, y, func(g, h *group) bool {
		return !g.hole && !h.hole && g.main == h.main && g.sig() == h.sig()
	})
}
