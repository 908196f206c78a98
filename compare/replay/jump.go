package replay

import (
	"cmp"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// restart is a start of the member after its first one. Up to 3.3.20 and 3.4.7 meta/consistent_index reached the disk
// only with key writes and snapshots. So a restart executed the later auth entries a second time.
type restart struct {
	// index is the publish entry; from the last proposal that the previous process is known to have made.
	index, from uint64
	id          RequestID
	done        bool
	// received is true if this is not a restart but the leader's snapshot, which replaces the database, auth revision
	// included.
	received bool
}

// authPlan is the auth revision after each auth entry if every entry is applied once, according to the log alone.
type authPlan struct {
	index []uint64
	after []uint64
	start uint64
}

// planAuth applies the auth entries once each, starting from state.
func planAuth(entries []AuthEntry, state *apply.Auth) *authPlan {
	p := &authPlan{start: state.Revision}
	for _, e := range entries {
		state.Apply(e.Req)
		p.index, p.after = append(p.index, e.Index), append(p.after, state.Revision)
	}
	return p
}

// at returns the planned auth revision after index.
func (p *authPlan) at(index uint64) uint64 {
	rev := p.start
	for i, x := range p.index {
		if x > index {
			break
		}
		rev = p.after[i]
	}
	return rev
}

// settle decides how the member's server took the auth requests on which releases disagree: the auth revision of its
// database shows it. If it took some and refused others, as a server that was upgraded, their rows are not judged. low
// is the lowest auth revision that the entries allow.
func (aw *authWatch) settle(entries []AuthEntry) (low uint64) {
	all, none := aw.plain, aw.Auth.Clone()
	none.Strict = true
	strict := planAuth(entries, none)
	from, to, have := aw.m.AppliedMin, aw.m.AppliedMax, aw.m.DB.Auth.Revision
	low = min(all.at(from), strict.at(from))
	switch {
	case !aw.Auth.Known || !aw.m.DB.Auth.HasRevision || all.at(from) <= have && have <= all.at(to):
		return all.at(from)
	case strict.at(from) <= have && have <= strict.at(to):
		aw.Auth.Strict, aw.plain = true, strict
		return strict.at(from)
	case have < low || have > max(all.at(to), strict.at(to)):
		return all.at(from)
	}
	for _, e := range entries {
		if aw.Auth.Disputed(e.Req) {
			for _, row := range authRowsOf(e.Req) {
				aw.touched[row.touchKey()] = true
			}
		}
	}
	return low
}

// authWatch follows the auth revision: what the log makes of it, and what restarts add.
type authWatch struct {
	*subject
	leases   *leaseWatch
	restarts []restart
	// others are the results of the other members, in step with this one's.
	others []*MemberResult
	// authSeen are the auth entries after saved, which a restart repeats. authAll are those since the base, which a
	// restart of 3.5 may repeat.
	authSeen, authAll []AuthEntry
	stamps            []Stamp
	plain             *authPlan
	// authBeyond counts the auth entries above every known commit index.
	authBeyond int64
	// shared is true when this model represents more than one member, usedOwnRestarts once it has used the restarts of
	// its member, which the others do not share.
	shared, usedOwnRestarts bool
}

// restart is called before every entry; at a publish entry of this member it decides the rise at that restart.
func (aw *authWatch) restart(idx uint64) {
	for i := range aw.restarts {
		r := &aw.restarts[i]
		if r.index > idx {
			return
		}
		if !r.done {
			aw.jump(r, idx)
		}
	}
}

// earlyJump decides the rise at a restart whose publish entry is still ahead: entries between the kill and the publish
// entry were applied after the restart.
func (aw *authWatch) earlyJump(it *item) bool {
	h, idx := it.req.Header, it.entry.Index
	if h.AuthRevision == 0 {
		return false
	}
	for i := range aw.restarts {
		r := &aw.restarts[i]
		if r.done || r.index <= idx || r.from >= idx {
			continue
		}
		before := aw.Auth.Revision
		aw.jump(r, idx)
		return aw.Auth.Revision > before
	}
	return false
}

// jump raises the auth revision by what the restart's second application can explain and the observations ask for.
func (aw *authWatch) jump(r *restart, idx uint64) {
	r.done = true
	aw.leases.repeatLeases(r)
	switch {
	case !aw.m.HasDB():
		return
	case r.index <= aw.oldAuth: // it may have repeated auth entries alone, whatever release wrote the database later
	case aw.mayFollow(release.DefragLosesIndex):
		aw.jump35(r, idx)
		return
	case aw.follows(release.IndexWithAuth):
		return
	}
	possible, entries, state := aw.reapply()
	if r.received {
		possible, entries, aw.authSeen = aw.maxInheritedDelta(), nil, nil
	}
	need := aw.authDelta(r, int64(possible))
	if need <= 0 {
		return
	}
	if r.received {
		aw.Auth.Revision += uint64(need)
		aw.res.Jumps = append(aw.res.Jumps, Jump{Index: idx, Snapshot: r.index, Extra: uint64(need),
			Possible: possible})
		return
	}
	j := Jump{Index: idx, Restart: r.index, Start: StartTime(r.id), Extra: uint64(need), Possible: possible,
		Entries: entries}
	if len(aw.authSeen) > 0 {
		j.From, j.To = aw.authSeen[0].Index, aw.authSeen[len(aw.authSeen)-1].Index
	}
	revision := aw.Auth.Revision + j.Extra
	if j.Extra == possible {
		// Only a complete repetition determines the users and roles afterwards.
		aw.Auth = state
	}
	aw.Auth.Revision = revision
	aw.res.Jumps = append(aw.res.Jumps, j)
}

// reapply executes the auth entries after the saved index once more on a copy and counts those that raise the revision.
func (aw *authWatch) reapply() (possible uint64, entries []uint64, state *apply.Auth) {
	return aw.again(aw.authSeen)
}

// maxInheritedDelta is the most by which a database received from another member can exceed this member's auth
// revision.
func (aw *authWatch) maxInheritedDelta() uint64 {
	own, most := totalDelta(aw.res), uint64(0)
	for _, m := range aw.others {
		most = max(most, totalDelta(m))
	}
	return most - min(most, own)
}

// totalDelta is by how much the restarts of a member raised its auth revision.
func totalDelta(m *MemberResult) uint64 {
	var n uint64
	for _, j := range m.Jumps {
		n += j.Extra
	}
	return n
}

// authDelta returns how much of the auth revision's rise is due to a restart. If the process proposed requests
// afterwards, their headers show it exactly. Otherwise it is the difference to the next known revision (from a later
// process, else the database), capped at what this restart can explain if another one follows before that. The database
// shows nothing where it has applied entries that every log has lost.
func (aw *authWatch) authDelta(r *restart, possible int64) int64 {
	so := int64(totalDelta(aw.res))
	for i := range aw.restarts {
		life := &aw.restarts[i]
		if life.index < r.index {
			continue
		}
		until := uint64(1<<64 - 1)
		if i+1 < len(aw.restarts) {
			until = aw.restarts[i+1].index
		}
		delta, seen := aw.observedDelta(life.index, until)
		switch {
		case seen && life == r:
			return delta - so
		case seen:
			return min(delta-so, possible)
		}
	}
	if aw.outran() {
		return 0
	}
	left := int64(aw.m.DB.Auth.Revision) - int64(aw.plain.at(aw.m.AppliedMax)) - so
	if aw.restarts[len(aw.restarts)-1].index > r.index {
		return min(left, possible)
	}
	return left
}

// observedDelta returns by how much the auth revisions in the member's headers between two indexes exceed that of the
// log.
func (aw *authWatch) observedDelta(after, until uint64) (delta int64, seen bool) {
	for _, st := range aw.stamps {
		if st.Index > after && st.Index < until {
			delta, seen = max(delta, int64(st.AuthRevision)-int64(aw.plain.at(st.Index-1))), true
		}
	}
	return delta, seen
}

// ownStamps are the auth revisions that a member stamped on its requests, without what was changed in the log. The auth
// revision never falls: a stamp is false if the same process stamped a lower one next and the database, which has
// applied the request, holds a lower one. A database alone may have been repaired.
func (s *Survey) ownStamps(m *evidence.Member) []Stamp {
	list := s.Stamps[m.MemberID]
	if m.DB == nil || !m.DB.Auth.HasRevision {
		return list
	}
	var own []Stamp
	for i, st := range list {
		if st.Index > m.AppliedMin || st.AuthRevision <= m.DB.Auth.Revision || !s.fallsAfter(m.MemberID, i) {
			own = append(own, st)
		}
	}
	return own
}

// fallsAfter reports whether the process that wrote a stamp wrote a lower one next.
func (s *Survey) fallsAfter(id dumplog.ID, i int) bool {
	list := s.Stamps[id]
	if i+1 >= len(list) || list[i+1].AuthRevision >= list[i].AuthRevision {
		return false
	}
	return !slices.ContainsFunc(s.Starts[id],
		func(st Start) bool { return st.Index > list[i].Index && st.Index <= list[i+1].Index })
}

// lowerDelta reduces the last restart's rise when the member applied an entry that its modelled auth revision would
// have refused. The rest belongs to a later restart.
func (aw *authWatch) lowerDelta(really uint64) {
	if n := len(aw.res.Jumps); n > 0 && really < aw.Auth.Revision {
		j := &aw.res.Jumps[n-1]
		j.Extra -= min(j.Extra, aw.Auth.Revision-really)
		if j.Extra == 0 {
			aw.res.Jumps = aw.res.Jumps[:n-1]
		}
	}
	aw.Auth.Revision = really
}

// findRestarts lists the starts of the member after its first, and the snapshots that bridge gaps of the member's log.
func findRestarts(sv *Survey, id dumplog.ID, sawBirth bool, snapshots []uint64) []restart {
	starts := sv.Starts[id]
	if sawBirth && len(starts) > 0 {
		starts = starts[1:]
	}
	var out []restart
	for _, st := range starts {
		out = append(out, restart{index: st.Index, id: st.ID})
	}
	for _, at := range snapshots {
		out = append(out, restart{index: at, received: true, from: at})
	}
	slices.SortFunc(out, func(a, b restart) int { return cmp.Compare(a.index, b.index) })
	prev := uint64(0)
	for i := range out {
		for _, stamp := range sv.Stamps[id] {
			if stamp.Index < out[i].index && stamp.Index > prev {
				out[i].from = stamp.Index
			}
		}
		prev = out[i].index
	}
	return out
}
