package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

var alarmListIndexStuck = described(Cause{
	ID: "alarm-list-index-stuck",
	Match: func(in *Input) *Match {
		return allOn(in, release.AlarmQueryKeepsIndex, byField(in, "an entry in the gap that changes data", "S02",
			check.GapAlarmQueries))
	},
})

var authDeniedIndexStuck = described(Cause{
	ID: "auth-denied-index-stuck",
	Match: func(in *Input) *Match {
		m := allOn(in, release.RefusedKeepsIndex, byField(in, "an entry in the gap that another member applied", "S02",
			check.GapRefused))
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
	ID: "cindex-overwritten-after-snapshot",
	Match: func(in *Input) *Match {
		m := allOn(in, release.SnapshotIndexReplaced,
			byField(in, "a database that ends where its consistent index says", "S02", check.GapOverwritten))
		if m != nil {
			m.Certainty = Strong
			m.Because = append(m.Because, ids(in, "C03")...)
		}
		return m
	},
})

var snapDBNotSynced = described(Cause{
	ID: "snap-db-dir-not-synced",
	Match: func(in *Input) *Match {
		m := byField(in, "the file of that snapshot, or a member that kept running after it", "S02",
			check.GapNotInstalled)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var backendNewerThanLogStart = described(Cause{
	ID: "backend-newer-than-log-start",
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Strong, Because: []string{}, RefutedBy: "a server of 3.2 or later"}
		for _, x := range in.Members {
			if v := x.Version.Text; (v == "3.0.x" || v == "3.1.x") && holdsMember(in, x.Label(), "S02", "D04") &&
				!holdsMember(in, x.Label(), "W01", "W02", "W03") {
				m.Members, m.Because = append(m.Members, x.Label()),
					append(m.Because, idsOf(in, x.Label(), "S02", "D04")...)
			}
		}
		if len(m.Members) == 0 {
			return nil
		}
		return m
	},
})

var cindexBelowSnapshot34 = described(Cause{
	ID: "cindex-below-snapshot-34",
	Match: func(in *Input) *Match {
		return hintOn(byField(in, "an older copy of the database that was put in place", "S02", check.GapOther), in,
			func(x *evidence.Member) bool {
				return x.Version.MayFollow(release.IndexBelowSnapshot)
			})
	},
})

var snapDBMissingSecond = described(Cause{
	ID: "snap-db-missing-second-snapshot",
	Match: func(in *Input) *Match {
		return hintOn(byField(in, "the file of the first snapshot", "S02", check.GapNotInstalled), in,
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
			out.Members, out.Because = append(out.Members, label), append(out.Because, idsOf(in, label, "S02")...)
		}
	}
	if len(out.Members) == 0 {
		return nil
	}
	return out
}

var alarmRaiseIndexStuck = described(Cause{
	ID: "alarm-raise-index-stuck",
	Match: func(in *Input) *Match {
		return onRelease(in, byField(in, "an entry in the gap that changes data", "S02", check.GapAlarmRaises),
			release.RaisedAlarmKeepsIndex, Hint, "S02")
	},
})
