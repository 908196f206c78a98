package cause

import "github.com/etcd-medic/etcd-medic/compare/check"

var forcedDropsApplied = described(Cause{
	ID: ForceNewClusterDropsAppliedEntries,
	Match: func(in *Input) *Match {
		return byField(in, "a client's request ID in the removals; another entry of the log that explains the write",
			check.M11, check.FieldForcedDrop)
	},
})

var forcedKeepsLearners = described(Cause{
	ID: ForceNewClusterKeepsLearners,
	Match: func(in *Input) *Match {
		return byField(in, "a conf change after the forced start that added the learner", check.M11,
			check.FieldForcedLearner)
	},
})

var forcedUsed = described(Cause{
	ID: ForceNewClusterUsed,
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "the ID of a client's request in the removals", check.M11, check.FieldForced))
	},
})
