package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var walTornTailNotRepaired = described(Cause{
	ID: WALTornTailNotRepaired,
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Strong, Because: []string{},
			RefutedBy: "a server of another release than 3.5.5 and 3.5.6"}
		for _, x := range in.Members {
			if !x.HasWAL() || !x.Version.MayFollow(release.TornWriteRefused) {
				continue
			}
			for _, d := range x.WAL.Summary.Damage {
				if d.Kind == dumplog.DamageTornTail && d.Short {
					m.Members, m.Because = append(m.Members, x.Label()),
						append(m.Because, idsOf(in, x.Label(), check.W02)...)
				}
			}
		}
		if len(m.Because) == 0 {
			return nil
		}
		return m
	},
})

var walHoleZeroed = described(Cause{
	ID: WALHoleZeroed,
	Match: func(in *Input) *Match {
		m := byLogDamage(in, "the same place with records in another copy of this data dir", check.W01,
			dumplog.DamageZeroHole)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var walEntryIndexGap = described(Cause{
	ID: WALEntryIndexGap,
	Match: func(in *Input) *Match {
		return byLogDamage(in, "a snapshot record at the index before the jump", check.W03, dumplog.DamageIndexGap)
	},
})

var hardStateBeyondLog = described(Cause{
	ID: HardstateBeyondLog,
	Match: func(in *Input) *Match {
		return stateOf(in, check.R03, "an entry or snapshot at that index in the log", func(x *evidence.Member) bool {
			return x.ConsistentIndex() <= x.LastIndex()
		})
	},
})

var singleMemberAck = described(Cause{
	ID: SingleMemberAckBeforeSync,
	Match: func(in *Input) *Match {
		m := stateOf(in, check.D04, "a second voter in the configuration", func(x *evidence.Member) bool {
			return oneVoter(x) && x.Version.MayLack(release.SyncBeforeApply)
		})
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var walTailLost = described(Cause{
	ID: WALTailLost,
	Match: func(in *Input) *Match {
		m := stateOf(in, check.D04, "the lost entries in another copy of this member's log",
			func(x *evidence.Member) bool {
				return !oneVoter(x) || !x.Version.MayLack(release.SyncBeforeApply)
			})
		if m != nil && !slices.ContainsFunc(m.Members, func(l string) bool { return wasApplied(in, in.member(l)) }) {
			m.Certainty = Strong // the number alone may be wrong
		}
		return m
	},
})

// wasApplied reports whether something besides a member's consistent index shows that entries after the end of its log
// exist: another log holds them, or the database holds what no entry of the log wrote.
func wasApplied(in *Input, m *evidence.Member) bool {
	if slices.ContainsFunc(in.Members, func(o *evidence.Member) bool {
		return o.HasLog() && o.ClusterID == m.ClusterID && o.LastIndex() >= m.StoredIndex()
	}) {
		return true
	}
	return in.Replay != nil && slices.ContainsFunc(in.Replay.Members, func(r *replay.MemberResult) bool {
		return r.Member == m && len(r.Extra) > 0
	})
}

func oneVoter(m *evidence.Member) bool {
	return m.Membership.RaftKnown && len(m.Membership.Voters) == 1
}

// stateOf treats the findings of a check as proof of a state, for members that fit and whose log shows no damage that
// explains it.
func stateOf(in *Input, id check.ID, refutedBy string, fits func(*evidence.Member) bool) *Match {
	m := &Match{Certainty: Proof, Because: []string{}, RefutedBy: refutedBy}
	for _, f := range in.Findings[id] {
		x := in.member(f.Members[0])
		if x == nil || holdsMember(in, x.Label(), check.W01, check.W02, check.W03) || !fits(x) {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()), append(m.Because, f.ID)
	}
	if len(m.Because) == 0 {
		return nil
	}
	return m
}

var walPurgedWhileNeeded = described(Cause{
	ID: WALPurgedWhileNeeded,
	Match: func(in *Input) *Match {
		m := byKind(in, "the missing segments, or a snapshot record that the log still holds", check.KindLogPurged)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var walEntryOver10MB = described(Cause{
	ID: WALEntryOver10MB,
	Match: func(in *Input) *Match {
		return besideVerdict(byKind(in, "a CRC that does not fit the record", check.KindRecordTooLarge))
	},
})

var walCRCFalseAlarm = described(Cause{
	ID: WALCRCFalseAlarm,
	Match: func(in *Input) *Match {
		m := besideVerdict(byKind(in, "a record whose CRC does not hold; a server of another release",
			check.KindLogPurgedAndSound))
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
})
