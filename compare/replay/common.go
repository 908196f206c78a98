package replay

// level finds the highest index at which the keys of all members can be compared. Up to 3.4 the consistent index moves
// with key writes only. So the index of a member that refused the last writes is lower although it has reached them.
// The replay shows that none of their effects is outstanding.
type level struct {
	// from is the lowest consistent index, to the highest index that every member may have applied.
	from, to uint64
	// revs are the members' revisions after each index from from+1 on.
	revs [][]int64
	// open is, by member, the first index whose effect its database does not hold yet; 0 when there is none.
	open []uint64
	// sims are the models by member; a model that represents several members is in it more than once.
	sims []*sim
}

func newLevel(r *Result, sims []*sim, reps []int) *level {
	l := &level{from: r.Common, to: r.Commit, open: make([]uint64, len(sims))}
	for i, m := range r.Members {
		s := sims[reps[i]]
		l.sims = append(l.sims, s)
		switch {
		case !m.Member.HasDB():
		case s == nil:
			l.to = min(l.to, m.Member.AppliedMin)
		default:
			l.to = min(l.to, m.Member.AppliedMax)
		}
	}
	return l
}

// note records how an entry ended on every member.
func (l *level) note(index uint64, outcomes []Outcome) {
	if index <= l.from || index > l.to || index != l.from+uint64(len(l.revs))+1 {
		return
	}
	row := make([]int64, len(l.sims))
	for i, s := range l.sims {
		if s == nil {
			continue
		}
		if index >= s.meet.index {
			if !s.met {
				s.below.arrive()
			}
			row[i] = s.Revision
		}
		if outcomes[i].State == NotApplied && l.open[i] == 0 {
			l.open[i] = index
		}
	}
	l.revs = append(l.revs, row)
}

// settle raises Result.KeyCommon and the members' revisions there.
func (l *level) settle(r *Result) {
	r.KeyCommon = r.Common
	top := l.from + uint64(len(l.revs))
	for _, at := range l.open {
		if at != 0 {
			top = min(top, at-1)
		}
	}
	if top <= l.from {
		return
	}
	r.KeyCommon = top
	for i, rev := range l.revs[top-l.from-1] {
		r.Members[i].RevisionAt = rev
	}
}
