package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

var alarmListIndexStuck = described(Cause{
	ID: AlarmListIndexStuck,
	Match: func(in *Input) *Match {
		return allOn(in, release.AlarmQueryKeepsIndex,
			byKind(in, "an entry in the gap that changes data", check.KindGapAlarmQueries))
	},
})

var authDeniedIndexStuck = described(Cause{
	ID: AuthDeniedIndexStuck,
	Match: func(in *Input) *Match {
		m := allOn(in, release.RefusedKeepsIndex, byKind(in, "an entry in the gap that another member applied",
			check.KindGapRefused))
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

// allOn keeps a match whose members may all be of a release that follows a rule.
func allOn(in *Input, r *release.Rule, m *Match) *Match {
	if m == nil {
		return nil
	}
	for _, label := range m.Members {
		if x := in.member(label); x == nil || !x.Version.MayFollow(r) {
			return nil
		}
	}
	return m
}

var cindexOverwritten = described(Cause{
	ID: CindexOverwrittenAfterSnapshot,
	Match: func(in *Input) *Match {
		m := allOn(in, release.SnapshotIndexReplaced,
			byKind(in, "a database that ends where its consistent index says", check.KindGapOverwritten))
		if m != nil {
			m.Certainty = Strong
			m.Because = append(m.Because, ids(in, check.C03)...)
		}
		return m
	},
})

var snapDBNotSynced = described(Cause{
	ID: SnapDBDirNotSynced,
	Match: func(in *Input) *Match {
		m := byKind(in, "the file of that snapshot, or a member that kept running after it", check.KindGapNotInstalled)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var backendNewerThanLogStart = described(Cause{
	ID: BackendNewerThanLogStart,
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Strong, Because: []string{}, RefutedBy: "a server of 3.2 or later"}
		for _, x := range in.Members {
			if mayAffect(BackendNewerThanLogStart, x) &&
				holdsMember(in, x.Label(), check.S02, check.D04) &&
				!holdsMember(in, x.Label(), check.W01, check.W02, check.W03) {
				m.Members, m.Because = append(m.Members, x.Label()),
					append(m.Because, idsOf(in, x.Label(), check.S02, check.D04)...)
			}
		}
		if len(m.Members) == 0 {
			return nil
		}
		return m
	},
})

var cindexBelowSnapshot34 = described(Cause{
	ID: CindexBelowSnapshot34,
	Match: func(in *Input) *Match {
		return hintOn(byKind(in, "an older copy of the database that was put in place", check.KindGapOther), in,
			func(x *evidence.Member) bool {
				return x.Version.MayFollow(release.IndexBelowSnapshot)
			})
	},
})

var snapDBMissingSecond = described(Cause{
	ID: SnapDBMissingSecondSnapshot,
	Match: func(in *Input) *Match {
		return hintOn(byKind(in, "the file of the first snapshot", check.KindGapNotInstalled), in,
			func(x *evidence.Member) bool {
				n := 0
				for _, s := range x.WAL.Summary.Snapshots {
					if s.Index > x.ConsistentIndex() && check.Received(x, s.Index) {
						n++
					}
				}
				return n > 1
			})
	},
})

// hintOn lowers a match to a hint and keeps the members that fit.
func hintOn(m *Match, in *Input, fits func(*evidence.Member) bool) *Match {
	if m == nil {
		return nil
	}
	out := &Match{Certainty: Hint, RefutedBy: m.RefutedBy, Because: []string{}}
	for _, label := range m.Members {
		if x := in.member(label); x != nil && fits(x) {
			out.Members, out.Because = append(out.Members, label), append(out.Because, idsOf(in, label, check.S02)...)
		}
	}
	if len(out.Members) == 0 {
		return nil
	}
	return out
}

var alarmRaiseIndexStuck = described(Cause{
	ID: AlarmRaiseIndexStuck,
	Match: func(in *Input) *Match {
		return onRelease(in, byKind(in, "an entry in the gap that changes data", check.KindGapAlarmRaises),
			release.RaisedAlarmKeepsIndex, Hint, check.S02)
	},
})
