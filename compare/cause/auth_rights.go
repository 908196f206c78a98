package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

var rbacBypass = Cause{
	ID: "rbac-bypass-evidence", Title: "a user reached keys without permission through inner operations of a transaction",
	Doc: `Operations of a nested transaction, and the previous value or the lease of a put inside a transaction, were not checked against the user's
permissions. The entries named took effect although the roles in the log, replayed up to them, do not allow it.`,
	Affected: []string{"nested transactions: up to 3.4.41, 3.5.27, 3.6.8", "prev_kv or lease of a put in a " +
		"transaction: up to 3.4.43, 3.5.29, 3.6.10"},
	FixedIn: []string{"3.4.42, 3.5.28, 3.6.9 (nested transactions)", "3.4.44, 3.5.30, 3.6.11 (prev_kv and lease)"},
	Refs: []string{"https://github.com/etcd-io/etcd/security/advisories/GHSA-rfx7-8w68-q57q",
		"https://github.com/etcd-io/etcd/security/advisories/GHSA-x35m-3gp4-4fh5",
		"https://github.com/etcd-io/etcd/pull/21683"},
	LookAlikes: "a role change that the log does not hold; user root; an alarm, during which servers up to 3.5 check " +
		"no permissions",
	Recovery: "upgrade; review the keys named and what the accounts could read there",
	Loss:     "none of data",
	Match: func(in *Input) *Match {
		m := aside(in, "A07", "a grant of the permission in an entry that the log does not hold",
			func(check.Finding) bool { return true })
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var authCacheAfterStart = Cause{
	ID: "auth-cache-empty-after-start", Title: "a member that restarted refused all users but root, because its " +
		"permission cache was empty",
	Doc: `3.4.20 does not load the cache of permissions when it starts. Until the next change of auth, or a restart on another release, the member
refuses every write of a user that is not root, while the others apply it. Auth revision and auth buckets are equal everywhere.
Shown when every entry that the member lacks is one of a user other than root with permission, from a start of that member on, and none of
such a user took effect there until the next change of auth.`,
	Affected: []string{"3.4.20"},
	FixedIn:  []string{"3.4.21"},
	Refs: append(refs("etcd-io/etcd", 14355), "https://github.com/etcd-io/etcd/pull/14358",
		"https://github.com/etcd-io/etcd/pull/14409"),
	LookAlikes: "auth-revision-replay (the auth revision differs); cindex-ahead-of-apply (entries of any user, one " +
		"per crash); auth-cache-empty-after-snapshot",
	Recovery: "reseed the member from one that applied the writes; upgrade",
	Loss:     "the writes of those users on that member",
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
}

var authCacheAfterSnapshot = Cause{
	ID: "auth-cache-empty-after-snapshot", Title: "a member that received a snapshot refused all users but root, " +
		"because its permission cache was empty",
	Doc: `3.4.20, 3.4.21 and 3.5.5 do not load the cache of permissions when a database comes from the leader as a snapshot. From the snapshot on
the member refuses every write of a user that is not root, until auth changes or it is restarted on a release that loads the cache.
Shown like auth-cache-empty-after-start, with a received snapshot (a jump in the member's own log) in the place of the start.`,
	Affected: []string{"3.4.20 - 3.4.21", "3.5.5"},
	FixedIn:  []string{"3.4.22", "3.5.6"},
	Refs: append(refs("etcd-io/etcd", 14571), "https://github.com/etcd-io/etcd/pull/14648",
		"https://github.com/etcd-io/etcd/pull/14649"),
	LookAlikes: "a snapshot that the member took itself, which leaves no jump in its log; auth-cache-empty-after-start",
	Recovery:   "upgrade, reseed the member again, and compare it with its source before it serves",
	Loss:       "the writes of those users on that member",
	Match: func(in *Input) *Match {
		return shutMembers(in, release.PermCacheEmptyAfterSnapshot, "a write of a user other than root that took "+
			"effect on the member behind the snapshot",
			func(pos int, s replay.ShutSpan) bool { return snapshotOpens(in, pos, s) })
	},
}

// snapshotOpens tells whether a snapshot that the member received lies between the last write that took effect and the
// first that did not.
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

// shutMembers matches members whose missing entries all lie in stretches that shut out users other than root, each
// opened as asked.
func shutMembers(in *Input, rule *release.Rule, refutedBy string, opened func(pos int, s replay.ShutSpan) bool) *Match {
	if in.Replay == nil || in.Replay.Survey == nil ||
		len(in.Findings["A01"])+len(in.Findings["R01"])+len(in.Findings["D02"]) > 0 {
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
	m.Because = ids(in, "K03", "K02", "K01")
	return m
}
