package cause

import "github.com/etcd-medic/etcd-medic/compare/check"

var forcedDropsApplied = Cause{
	ID:    "force-new-cluster-drops-applied-entries",
	Title: "force-new-cluster cut off log entries that the database had applied",
	Doc: `A start with --force-new-cluster removes all other voters behind the commit index that the log had stored, and cuts off what stood there.
That index lags: a killed member has usually applied more. The entries that were cut off stay in the database, and those that took their
indexes (the removals, later writes) are skipped there as applied already. Members that join afterwards replay the log, so they lack the
former and have the latter.
Proven by a run of removals without request ID, together with a write of a replaced entry that the database holds although no entry of the
log explains it, or with a removal of the run that the database never carried out although its consistent index is behind it.`,
	Affected: []string{"up to 3.4.45", "3.5.0 - 3.5.21", "3.6.0"},
	FixedIn:  []string{"3.5.22", "3.6.1", "3.7.0"},
	Refs:     refs("etcd-io/etcd", 14009, 20009, 20047),
	LookAlikes: "a forced start of a fixed release: its run begins behind the consistent index; a removal that a " +
		"client asked for: it carries the ID of the request",
	Recovery: "while the forced member is alone: save a snapshot of its database and restore a new cluster from " +
		"that; if others have joined: take its database as the base and write again what was skipped",
	Loss: "writes at the reused indexes on the forced member; the cut off ones on members that joined by the log",
	Match: func(in *Input) *Match {
		return byField(in, "a client's request ID in the removals; another entry of the log that explains the write",
			"M11", check.FieldForcedDrop)
	},
}

var forcedKeepsLearners = Cause{
	ID: "force-new-cluster-keeps-learners", Title: "a learner survived force-new-cluster",
	Doc: `The forced start removed the voters that the configuration listed, but not the learners. The learner stays in raft's configuration and
in the member list: the new cluster sends it entries, and refuses a second learner beside it.`,
	Affected:   []string{"3.4.0 - 3.4.45", "3.5.0 - 3.5.24", "3.6.0 - 3.6.5"},
	FixedIn:    []string{"3.5.25", "3.6.6", "3.7.0"},
	Refs:       refs("etcd-io/etcd", 20894),
	LookAlikes: "a learner that was added after the forced start",
	Recovery:   "remove the learner",
	Loss:       "none",
	Match: func(in *Input) *Match {
		return byField(in, "a conf change behind the forced start that added the learner", "M11",
			check.FieldForcedLearner)
	},
}

var forcedUsed = Cause{
	ID: "force-new-cluster-used", Title: "a cluster was forced from one member",
	Doc: `An operator started one member with --force-new-cluster after the majority was lost: its log holds removals of all other voters without the
ID of a request. What only the others held is gone, and those that survive carry the same cluster ID: one that is started again goes on as the
old cluster, or meets the new one and contradicts it. Alone this is no fault; it is named as the cause where removed members are among the
sources.`,
	LookAlikes: "none known: a removal that a client asked for carries the ID of its request",
	Recovery: "keep the removed members' data dirs aside and make sure that none is ever started; add new members " +
		"with empty dirs",
	Loss: "entries that only the other members held",
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "the ID of a client's request in the removals", "M11", check.FieldForced))
	},
}
