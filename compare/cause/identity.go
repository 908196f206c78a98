package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var clonedDir = described(Cause{
	ID: DataDirClonedRunningTwice,
	Match: func(in *Input) *Match {
		const refuted = "an ID that another member shares; logs of which one is a prefix of the other"
		if m := byKind(in, refuted, check.KindDataDirCloned, check.KindTwoProcesses); m != nil {
			return m
		}
		if in.found(check.M12) {
			return nil // a twin cluster or a restore explains it
		}
		return proofOf(in, check.R06, refuted, func(f check.Finding) bool { return len(f.Members) > 1 })
	},
})

var removedDir = described(Cause{
	ID: RemovedMemberDataDir,
	Match: func(in *Input) *Match {
		if !in.found(check.M08) {
			return nil
		}
		return weigh(in, &Match{Certainty: Proof, Members: membersOf(in, check.M08), Because: ids(in, check.M08),
			RefutedBy: "a conf change that added the same ID after its removal"})
	},
})

var identityMismatch = described(Cause{
	ID: MemberIdentityMismatch,
	Match: func(in *Input) *Match {
		if m := byKind(in, "requests in the logs that differ", check.KindClusterIDAltered); m != nil {
			return m
		}
		if m := byKind(in, "a .snap file of the record in another copy of this data dir",
			check.KindSnapshotsOfOther); m != nil {
			return m
		}
		return weigh(in, byKind(in, "a configuration or member list that names the ID; the same name for the ID in "+
			"the member list", check.KindMemberUnknown, check.KindMemberNamedWrongly))
	},
})

var stuckLearner = described(Cause{
	ID: StuckLearner,
	Match: func(in *Input) *Match {
		const refuted = "a publish entry of the learner; a log of the learner that reaches the cluster's"
		if m := byKind(in, refuted, check.KindLearnerNeverStarted, check.KindLearnerNeverCaughtUp); m != nil {
			return m
		}
		m := byKind(in, refuted, check.KindLearnerJustAdded, check.KindLearnerBlocks)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var promotedUnstarted = described(Cause{
	ID: NonstartedLearnerPromoted,
	Match: func(in *Input) *Match {
		for _, f := range in.Findings[check.M05] {
			for _, m := range in.Members {
				if !m.HasWAL() || !slices.Contains(f.Members, m.Label()) {
					continue
				}
				for _, c := range m.WAL.Conf {
					if !c.Refused && c.Change.Member != nil && c.Change.Member.IsPromote &&
						c.Change.Type == dumplog.ConfChangeAddNode && names(f, c.Change.NodeID) {
						return &Match{Certainty: Strong, Members: f.Members, Because: ids(in, check.M05),
							RefutedBy: "a publish entry of the member in a part of the log that was purged"}
					}
				}
			}
		}
		return nil
	},
})

// names reports whether the finding is about the member.
func names(f check.Finding, id dumplog.ID) bool { return slices.Contains(f.Facts.About, id) }
