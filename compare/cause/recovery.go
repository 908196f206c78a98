package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

var backendNotRebound = Cause{
	ID: "backend-not-rebound-after-recovery", Title: "after installing a received database at its start the server " +
		"wrote the index to the closed one",
	Doc: `3.5.0 and 3.5.1 that find a received database waiting at their start put it in place, but keep the consistent index bound to the one they
had opened before. The first commit fails an assertion, and every further start on the same files does as well.
A hint: the database is as the leader sent it, its index is that of the received snapshot, and the log has committed more.`,
	Affected:   []string{"3.5.0 - 3.5.1"},
	FixedIn:    []string{"3.5.2"},
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/13501"},
	LookAlikes: "a healthy member that was stopped right after it received a snapshot",
	Recovery:   "upgrade and start it again",
	Loss:       "none",
	Match: func(in *Input) *Match {
		m := besideVerdict(proofOf(in, "S05", "a member that was stopped right after it received the snapshot", every))
		return onRelease(in, m, release.BackendNotRebound, Hint, "S05")
	},
}

var indexCheckSkipped = Cause{
	ID: "bootstrap-index-check-skipped", Title: "a start did not notice that the database is older than the snapshot",
	Doc: `3.3.21 to 3.3.27, 3.4.8 to 3.4.28 and 3.5.0 to 3.5.11 compare the wrong variable when they start: a database that is older than the raft snapshot
could be accepted where a received database file with a low index was present. The member then runs without the entries in between.
A hint: the database is below the snapshot, and the member has published a start behind that snapshot. A database that was put back after
that start leaves the same, and is far more likely.`,
	Affected: []string{"3.3.21 - 3.3.27", "3.4.8 - 3.4.28", "3.5.0 - 3.5.11"},
	FixedIn:  []string{"3.4.29", "3.5.12", "3.6.0"},
	Refs: []string{"https://github.com/etcd-io/etcd/pull/17151", "https://github.com/etcd-io/etcd/pull/17154",
		"https://github.com/etcd-io/etcd/pull/11888"},
	LookAlikes: "data-dir-rolled-back, and every other cause of a gap below a snapshot",
	Recovery:   "reseed the member",
	Loss:       "on this member the entries between its database and the snapshot",
	Match: func(in *Input) *Match {
		if in.Replay == nil || in.Replay.Survey == nil {
			return nil
		}
		m := byField(in, "a database that was put back after the start; no start of the member behind the snapshot",
			"S02", check.GapOther, check.GapNotInstalled)
		m = hintOn(m, in, func(x *evidence.Member) bool {
			for _, st := range in.Replay.Survey.Starts[x.MemberID] {
				if st.Index > snapshotIndex(x) && st.Index <= x.LastIndex() {
					return true
				}
			}
			return false
		})
		return besideVerdict(onRelease(in, m, release.IndexCheckSkipped, Hint, "S02"))
	},
}

var defragRacesInstall = Cause{
	ID: "defrag-races-snapshot-install", Title: "a defragmentation put the old database over one that had just been received",
	Doc: `A defragmentation copies the database that is open and renames the copy over member/snap/db. When the server installs a received database
meanwhile, the copy of the old one ends up in its place, freshly compacted, or pages of the two are mixed.
A hint: the log received a snapshot, no received database waits, and the database is older and has hardly a free page, or its pages contradict
each other. The form on disk follows from the sources; the report saw a page number that was wrong.`,
	Affected: []string{"up to 3.4.37", "3.5.0 - 3.5.22", "3.6.0 - 3.6.4"},
	FixedIn:  []string{"3.4.38", "3.5.23", "3.6.5", "3.7.0"},
	Refs: append(refs("etcd-io/etcd", 20271), "https://github.com/etcd-io/etcd/pull/20553",
		"https://github.com/etcd-io/etcd/pull/20650", "https://github.com/etcd-io/etcd/pull/20653"),
	LookAlikes: "snap-db-dir-not-synced, where the old database was never touched; a database put back from an older copy",
	Recovery:   "reseed the member; do not defragment a member that is catching up",
	Loss:       "of this member only",
	Match:      matchDefragRace,
}

func matchDefragRace(in *Input) *Match {
	m := &Match{Certainty: Hint, Aside: true, Because: []string{}, RefutedBy: "a member that was not defragmented " +
		"while it caught up"}
	for _, f := range in.Findings["S02"] {
		x := in.member(f.Members[0])
		if x == nil || x.Version.Has(release.DefragRacesInstall).Excluded() || !check.Received(x, snapshotIndex(x)) ||
			!compact(x) && !holdsMember(in, x.Label(), "D02") {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()),
			append(m.Because, append([]string{f.ID}, idsOf(in, x.Label(), "D02")...)...)
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

// compact tells a database with hardly a free page, as a defragmentation leaves it.
func compact(m *evidence.Member) bool {
	return m.DB != nil && m.DB.Pages != nil && m.DB.Pages.Complete && m.DB.Pages.Free <= 2+m.DB.Pages.Reachable/50
}
