package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

var backendNotRebound = described(Cause{
	ID: BackendNotReboundAfterRecovery,
	Match: func(in *Input) *Match {
		m := besideVerdict(proofOf(in, check.S05, "a member that was stopped right after it received the snapshot",
			every))
		return onRelease(in, m, release.BackendNotRebound, Hint, check.S05)
	},
})

var indexCheckSkipped = described(Cause{
	ID: BootstrapIndexCheckSkipped,
	Match: func(in *Input) *Match {
		if in.Replay == nil || in.Replay.Survey == nil {
			return nil
		}
		m := byKind(in, "a database that was put back after the start; no start of the member after the snapshot",
			check.KindGapOther, check.KindGapNotInstalled)
		m = hintOn(m, in, func(x *evidence.Member) bool {
			for _, st := range in.Replay.Survey.Starts[x.MemberID] {
				if st.Index > x.NewestRecord().Index && st.Index <= x.LastIndex() {
					return true
				}
			}
			return false
		})
		return besideVerdict(onRelease(in, m, release.IndexCheckSkipped, Hint, check.S02))
	},
})

var defragRacesInstall = described(Cause{
	ID:    DefragRacesSnapshotInstall,
	Match: matchDefragRace,
})

func matchDefragRace(in *Input) *Match {
	m := &Match{Certainty: Hint, Secondary: true, Because: []string{},
		RefutedBy: "a member that was not defragmented " +
			"while it caught up"}
	for _, f := range in.Findings[check.S02] {
		x := in.member(f.Members[0])
		if x == nil || x.Version.Has(release.DefragRacesInstall).Excluded() ||
			!check.Received(x, x.NewestRecord().Index) ||
			!compact(x) && !holdsMember(in, x.Label(), check.D02) {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()),
			append(m.Because, append([]string{f.ID}, idsOf(in, x.Label(), check.D02)...)...)
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

// compact reports whether a database has hardly a free page, as after a defragmentation.
func compact(m *evidence.Member) bool {
	return m.DB != nil && m.DB.Pages != nil && m.DB.Pages.Complete && m.DB.Pages.Free <= 2+m.DB.Pages.Reachable/50
}
