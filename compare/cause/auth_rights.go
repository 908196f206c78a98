package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

var rbacBypass = described(Cause{
	ID: RBACBypassEvidence,
	Match: func(in *Input) *Match {
		m := aside(in, check.A07, "a grant of the permission in an entry that the log does not hold",
			func(check.Finding) bool { return true })
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var authCacheAfterStart = described(Cause{
	ID: AuthCacheEmptyAfterStart,
	Match: func(in *Input) *Match {
		return shutMembers(in, release.PermCacheColdStart, "a write of a user other than root that took effect on "+
			"the member between the start and the next change of auth",
			func(pos int, s replay.ShutSpan) bool {
				for _, st := range in.Replay.Survey.Starts[in.Members[pos].MemberID] {
					if st.Index > max(s.Begin, s.LastApplied) {
						return !snapshotOpens(in, pos, s)
					}
				}
				return false
			})
	},
})

var authCacheAfterSnapshot = described(Cause{
	ID: AuthCacheEmptyAfterSnapshot,
	Match: func(in *Input) *Match {
		return shutMembers(in, release.PermCacheEmptyAfterSnapshot, "a write of a user other than root that took "+
			"effect on the member after the snapshot",
			func(pos int, s replay.ShutSpan) bool { return snapshotOpens(in, pos, s) })
	},
})

// snapshotOpens reports whether the member received a snapshot between the last write that took effect and the first
// that did not.
func snapshotOpens(in *Input, pos int, s replay.ShutSpan) bool {
	w := &in.Members[pos].WAL
	if !w.Present() {
		return false
	}
	for _, j := range w.Summary.Jumps {
		if j.To >= max(s.Begin, s.LastApplied) && j.To < s.First {
			return true
		}
	}
	return false
}

// shutMembers matches members whose missing entries are all in spans in which users other than root were refused;
// opened must accept the start of each span.
func shutMembers(in *Input, rule *release.Rule, refutedBy string, opened func(pos int, s replay.ShutSpan) bool) *Match {
	if in.Replay == nil || in.Replay.Survey == nil ||
		in.found(check.A01, check.R01, check.D02) {
		return nil
	}
	m := &Match{Certainty: Strong, RefutedBy: refutedBy}
	m.Members = onlyMissing(in, func(pos int, r *replay.MemberResult) bool {
		missing := 0
		for _, s := range r.Shut {
			if s.After > 0 || !opened(pos, s) {
				return false
			}
			missing += s.Missing
		}
		return in.Members[pos].Version.MayFollow(rule) && missing == r.Counts[replay.Missing]
	})
	if len(m.Members) == 0 {
		return nil
	}
	m.Because = ids(in, check.K03, check.K02, check.K01)
	return m
}
