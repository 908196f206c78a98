package cause

import "github.com/etcd-medic/etcd-medic/compare/check"

var forcedDropsApplied = described(Cause{
	ID: ForceNewClusterDropsAppliedEntries,
	Match: func(in *Input) *Match {
		return byKind(in, "a client's request ID in the removals; another entry of the log that explains the write",
			check.KindForcedDroppedApplied)
	},
})

var forcedKeepsLearners = described(Cause{
	ID: ForceNewClusterKeepsLearners,
	Match: func(in *Input) *Match {
		return byKind(in, "a conf change after the forced start that added the learner", check.KindForcedKeptLearner)
	},
})

var forcedUsed = described(Cause{
	ID: ForceNewClusterUsed,
	Match: func(in *Input) *Match {
		return weigh(in, byKind(in, "the ID of a client's request in the removals", check.KindClusterForced))
	},
})
