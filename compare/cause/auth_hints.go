package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var authCacheStale = described(Cause{
	ID: AuthCacheStaleAfterSnapshot,
	Match: func(in *Input) *Match {
		if in.Replay == nil || in.found(check.A01, check.R01, check.D02) {
			return nil
		}
		m := &Match{Certainty: Hint, RefutedBy: "a write after the snapshot that the old roles refuse and the " +
			"member applied"}
		m.Members = onlyMissing(in, func(pos int, r *replay.MemberResult) bool {
			return !in.Members[pos].Version.Follows(release.PermCacheFollowsSnapshot) &&
				r.Stale == r.Counts[replay.Missing]
		})
		if len(m.Members) == 0 {
			return nil
		}
		m.Because = ids(in, check.K03, check.K02, check.K01)
		return m
	},
})

// lateWindow is how many entries after a delete can still see the row. The buffer is read until the next commit, at
// most a tenth of a second later; entries of the same batch are applied within that time.
const lateWindow = 16

var deleteVisibleLate = described(Cause{
	ID:    BackendDeleteVisibleLate,
	Match: matchDeleteLate,
})

// matchDeleteLate requires one entry that ended differently, directly after the delete of its user or of a role.
func matchDeleteLate(in *Input) *Match {
	if in.Replay == nil || in.Replay.Survey == nil || !in.found(check.K06) ||
		in.found(check.A01, check.K03, check.L03) {
		return nil
	}
	first := firstDeparture(in)
	if first == nil || !deletedBefore(in.Replay.Survey, first) {
		return nil
	}
	m := &Match{Certainty: Hint, RefutedBy: "an earlier entry that ended differently; a commit of the backend " +
		"between the delete and the entry", Because: ids(in, check.K06, check.K02, check.K01)}
	for i, o := range first.Outcomes {
		if in.Members[i].Version.Has(release.DeleteSeenLate).Excluded() {
			return nil
		}
		if o.State == replay.Applied {
			m.Members = append(m.Members, in.Members[i].Label()) // the rules refuse it
		}
	}
	return m
}

// firstDeparture is the first entry that some members applied and others refused for want of permission.
func firstDeparture(in *Input) *replay.Event {
	for _, e := range in.Replay.Events {
		applied, refused := false, false
		for _, o := range e.Outcomes {
			applied = applied || o.State == replay.Applied
			refused = refused || o.State == replay.Refused && o.Reason == replay.ReasonPermission
		}
		switch {
		case applied && refused:
			return e
		case len(e.Lacking) > 0:
			return nil
		}
	}
	return nil
}

func deletedBefore(s *replay.Survey, e *replay.Event) bool {
	for _, a := range s.Auth {
		if a.Index >= e.Index || a.Index+lateWindow < e.Index || a.Req.Auth == nil {
			continue
		}
		switch a.Req.Kind {
		case dumplog.KindAuthUserDelete, dumplog.KindAuthUserRevokeRole:
			if a.Req.Auth.User == e.User {
				return true
			}
		case dumplog.KindAuthRoleDelete, dumplog.KindAuthRoleRevokePermission:
			return true
		}
	}
	return false
}
