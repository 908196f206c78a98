package replay

import (
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// maxSuffix bounds how many auth entries before a restart are tried.
const maxSuffix = 512

// jump35 is for releases in which a restart can repeat entries of every kind: those where a defragmentation loses the
// index (release.DefragLosesIndex), and among them those where meta/term could freeze it (release.IndexNeedsTerm). It
// explains a rise of the auth revision by a restart of 3.5 that executed the last entries before it again. The stored
// index is unknown, so it uses the shortest range of auth entries before the restart whose repetition results in
// exactly the observed rise.
func (aw *authWatch) jump35(r *restart, idx uint64) {
	if r.received || len(aw.authAll) == 0 || !aw.Auth.Known {
		return
	}
	aw.usedOwnRestarts = aw.usedOwnRestarts || !aw.outran() && aw.m.DB.Auth.Revision > aw.plain.at(aw.m.AppliedMax)
	tail := aw.authAll[max(len(aw.authAll)-maxSuffix, 0):]
	most, _, _ := aw.again(tail)
	need := aw.authDelta(r, int64(most))
	if need <= 0 {
		return
	}
	for i := len(tail) - 1; i >= 0; i-- {
		raised, entries, state := aw.again(tail[i:])
		if raised != uint64(need) {
			continue
		}
		state.Revision = aw.Auth.Revision + raised
		aw.Auth = state
		aw.res.Jumps = append(aw.res.Jumps, Jump{Index: idx, Restart: r.index, Start: StartTime(r.id), Extra: raised,
			Possible: raised, AllKinds: true,
			Entries: entries, From: tail[i].Index, To: tail[len(tail)-1].Index})
		return
	}
}

// again executes auth entries once more on a copy and counts those that raise the revision.
func (aw *authWatch) again(list []AuthEntry) (raised uint64, entries []uint64, state *apply.Auth) {
	state = aw.Auth.Clone()
	for _, e := range list {
		if effective, _ := state.Apply(e.Req); effective {
			raised++
			entries = append(entries, e.Index)
		}
	}
	return raised, entries, state
}

// authBegan reports whether auth was never used before a log that begins with a restore: on some member the auth
// revision is 1 when all auth entries of the log are taken off. It grows by one at most with each, and is 1 on a
// database without users and roles.
func (r *Result) authBegan() bool {
	for _, m := range r.Members {
		if !m.Member.HasDB() || !m.Member.DB.Auth.HasRevision {
			continue
		}
		n := uint64(0)
		for _, e := range r.Survey.Auth {
			if e.Index <= m.Member.AppliedMax && e.Req.Kind != dumplog.KindAuthEnable {
				n++
			}
		}
		if m.Member.DB.Auth.Revision == n+1 {
			return true
		}
	}
	return false
}

// authFromLog builds the model's users and roles from the log alone, up to where its keys begin.
func (aw *authWatch) authFromLog(r *Result) {
	aw.Auth = apply.NewAuth(aw.Version)
	for _, e := range r.Survey.Auth {
		if e.Index > aw.base {
			break
		}
		aw.Auth.Apply(e.Req)
		aw.authAll = append(aw.authAll, e)
	}
}
