package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var belowQuorum = described(Cause{
	ID: "committed-entry-below-quorum",
	Match: func(in *Input) *Match {
		if len(in.Findings["R07"]) == 0 {
			return nil
		}
		m := &Match{Certainty: Hint, Secondary: true, Members: membersOf(in, "R07"), Because: ids(in, "R07"),
			RefutedBy: "copies of the same members, taken after they stopped, that hold the entry"}
		switch f := in.Findings["R07"][0]; {
		case fieldIs(f, []string{check.FieldLogsLost}):
			m.Certainty, m.Secondary = Proof, false
		case fieldIs(f, []string{check.FieldLogsOlder}):
			m.Certainty, m.Secondary = Strong, false
		}
		return weigh(in, m)
	},
})

var logDivergence = described(Cause{
	ID: "raft-log-divergence",
	Match: func(in *Input) *Match {
		return proofOf(in, "R01", "the same entry in both logs, read from other copies",
			func(f check.Finding) bool { return !isAltered(f) })
	},
})

var logEntryAltered = described(Cause{
	ID: "log-entry-altered",
	Match: func(in *Input) *Match {
		m := proofOf(in, "R01", "the same entry in another copy of this log", isAltered)
		if m == nil {
			return nil
		}
		m.Certainty = Strong
		if slices.ContainsFunc(in.Findings["R01"],
			func(f check.Finding) bool { return isAltered(f) && len(f.Members) > 1 }) {
			m.Certainty = Hint
		}
		return m
	},
})

func isAltered(f check.Finding) bool { return fieldIs(f, []string{check.FieldAltered}) }

var twoLeaders = described(Cause{
	ID: "two-leaders-one-term",
	Match: func(in *Input) *Match {
		if len(in.Findings["R05"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "R05"), Because: ids(in, "R05"),
			RefutedBy: "other copies of the logs in which the term begins at one index"}
	},
})

var doubleVote = described(Cause{
	ID: "double-vote",
	Match: func(in *Input) *Match {
		if len(in.Findings["R06"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "R06"), Because: ids(in, "R06"),
			RefutedBy: "other copies of the log without one of the two records"}
	},
})

var hardStateRegress = described(Cause{
	ID: "hardstate-regress",
	Match: func(in *Input) *Match {
		return byField(in, "a copy of the log in which they rise", "R08", "HardState.commit",
			string(dumplog.DamageTermOrder), check.FieldVote)
	},
})

var jointConfig = described(Cause{
	ID: "joint-config-left",
	Match: func(in *Input) *Match {
		if len(in.Findings["R09"]) == 0 {
			return nil
		}
		return &Match{Certainty: Strong, Members: membersOf(in, "R09"), Because: ids(in, "R09"),
			RefutedBy: "a release of etcd that proposes joint changes"}
	},
})
