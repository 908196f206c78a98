package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var belowQuorum = described(Cause{
	ID: CommittedEntryBelowQuorum,
	Match: func(in *Input) *Match {
		if !in.found(check.R07) {
			return nil
		}
		m := &Match{Certainty: Hint, Secondary: true, Members: membersOf(in, check.R07), Because: ids(in, check.R07),
			RefutedBy: "copies of the same members, taken after they stopped, that hold the entry"}
		switch f := in.Findings[check.R07][0]; {
		case f.Is(check.KindBelowQuorumLogsLost):
			m.Certainty, m.Secondary = Proof, false
		case f.Is(check.KindBelowQuorumLogsOlder):
			m.Certainty, m.Secondary = Strong, false
		}
		return weigh(in, m)
	},
})

var logDivergence = described(Cause{
	ID: RaftLogDivergence,
	Match: func(in *Input) *Match {
		return proofOf(in, check.R01, "the same entry in both logs, read from other copies",
			func(f check.Finding) bool { return !isAltered(f) && !f.Is(check.KindForcedApart) })
	},
})

var logEntryAltered = described(Cause{
	ID: LogEntryAltered,
	Match: func(in *Input) *Match {
		m := proofOf(in, check.R01, "the same entry in another copy of this log", isAltered)
		if m == nil {
			return nil
		}
		m.Certainty = Strong
		if slices.ContainsFunc(in.Findings[check.R01],
			func(f check.Finding) bool { return isAltered(f) && len(f.Members) > 1 }) {
			m.Certainty = Hint
		}
		return m
	},
})

func isAltered(f check.Finding) bool {
	return f.Is(check.KindEntriesAltered, check.KindEntriesRenumbered)
}

var twoLeaders = described(Cause{
	ID: TwoLeadersOneTerm,
	Match: func(in *Input) *Match {
		if !in.found(check.R05) {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, check.R05), Because: ids(in, check.R05),
			RefutedBy: "other copies of the logs in which the term begins at one index"}
	},
})

var doubleVote = described(Cause{
	ID: DoubleVote,
	Match: func(in *Input) *Match {
		if !in.found(check.R06) {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, check.R06), Because: ids(in, check.R06),
			RefutedBy: "other copies of the log without one of the two records"}
	},
})

var hardStateRegress = described(Cause{
	ID: HardstateRegress,
	Match: func(in *Input) *Match {
		return byKind(in, "a copy of the log in which they rise", check.KindCommitFalls, check.KindTermFalls,
			check.KindVoteAltered)
	},
})

var jointConfig = described(Cause{
	ID: JointConfigLeft,
	Match: func(in *Input) *Match {
		if !in.found(check.R09) {
			return nil
		}
		return &Match{Certainty: Strong, Members: membersOf(in, check.R09), Because: ids(in, check.R09),
			RefutedBy: "a release of etcd that proposes joint changes"}
	},
})
