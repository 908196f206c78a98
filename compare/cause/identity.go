package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var clonedDir = Cause{
	ID: "data-dir-cloned-running-twice", Title: "a data dir was copied and two processes ran under one identity",
	Doc: `A copied volume or data dir was started on a second host while the first ran, or after it had gone on. Both count as one voter: each breaks
the promises of the other, votes twice, and a committed entry can be lost.
Proven by two copies whose logs share entries of servers and then fork, by entries of an older process of the member between those of a newer
one, or by two votes of the member in one term in two copies.`,
	LookAlikes: "an older copy of the data dir, which is a prefix of the newer; two members whose IDs share the low " +
		"16 bits; same-token-twin-clusters, where nothing is shared",
	Recovery: "stop both; keep the copy whose log agrees with the majority; better remove the member and add it " +
		"again with an empty dir",
	Loss: "entries that were committed with the help of both; raft's safety is in doubt",
	Match: func(in *Input) *Match {
		const refuted = "an ID that another member shares; logs of which one is a prefix of the other"
		if m := byField(in, refuted, "M12", check.FieldClone, check.FieldTwoProcesses); m != nil {
			return m
		}
		if len(in.Findings["M12"]) > 0 {
			return nil // a twin cluster or a restore explains it
		}
		return proofOf(in, "R06", refuted, func(f check.Finding) bool { return len(f.Members) > 1 })
	},
}

var removedDir = Cause{
	ID: "removed-member-data-dir", Title: "the data dir is that of a member that was removed",
	Doc: `The member was removed from the cluster, and its data dir is among the sources, or was put back into use. The server refuses to start on it,
and the others refuse its messages. Its content ends where it was cut off. Beside the data dirs of members it explains nothing but itself.`,
	Refs:       refs("etcd-io/etcd", 9613, 13848),
	LookAlikes: "members that a forced start removed (force-new-cluster-used): their IDs can be used again",
	Recovery: "leave it out of any comparison; add a new member with an empty dir; check what it holds before the " +
		"dir is deleted",
	Loss: "none",
	Match: func(in *Input) *Match {
		if len(in.Findings["M08"]) == 0 {
			return nil
		}
		return weigh(in, &Match{Certainty: Proof, Members: membersOf(in, "M08"), Because: ids(in, "M08"),
			RefutedBy: "a conf change that added the same ID after its removal"})
	},
}

var identityMismatch = Cause{
	ID: "member-identity-mismatch", Title: "the data dir is that of another member than the one it is taken for",
	Doc: `Volumes were swapped, a WAL folder was put beside the database of another member, or an address was given to a new member while the old
data dir stayed. The identity is the member ID in the WAL, whatever the host or the flags say. Up to 3.4.31 and 3.5.13 messages for another
ID were accepted.
Proven when the ID is in no configuration, member list or conf change of the set, when the dir that was given under one member's name holds
another member's ID, or when a log carries another cluster ID than logs that hold the same requests.`,
	Affected:   []string{"all; messages for another ID were accepted up to 3.4.31 and 3.5.0 - 3.5.13"},
	FixedIn:    []string{"3.4.32", "3.5.14", "3.6.0"},
	Refs:       refs("etcd-io/etcd", 17081),
	LookAlikes: "copies of one data dir of different age (one ID twice); sources of another cluster (another cluster ID)",
	Recovery:   "sort out which dir belongs to which member before any of them is started",
	Loss:       "possibly raft's safety, if both ran",
	Match: func(in *Input) *Match {
		if m := byField(in, "requests in the logs that differ", "M01", check.FieldClusterID); m != nil {
			return m
		}
		return weigh(in, byField(in, "a configuration or member list that names the ID; the same name for the ID in "+
			"the member list", "M09", check.FieldUnknownMember, check.FieldOtherName))
	},
}

var stuckLearner = Cause{
	ID: "stuck-learner", Title: "a learner that was added never caught up",
	Doc: `A learner was added and never started, because its peer URL is wrong or nobody started it, or it started and never received the log. It can not
be promoted, and as long as it is there another learner is refused (one by default, --max-learners since 3.5).
Proven when raft's configuration lists the learner and no log or member list shows that it ever published itself, or when its own data dir
holds nothing from after its addition; strong when the cluster has done nothing since, so that it may only need time, and when servers refused
another learner because this one was still behind.`,
	LookAlikes: "a learner that followed the log and was stopped before the others, which only lags; one that was " +
		"added just before the sources were copied; a member list of 3.5.1 - 3.5.19, which lacks names (the log's " +
		"publish entries count)",
	Recovery: "start the learner at its peer URL with initial-cluster-state existing; if the URL is wrong remove " +
		"it and add it again",
	Loss: "none; the cluster runs, with less tolerance of failures than intended",
	Match: func(in *Input) *Match {
		const refuted = "a publish entry of the learner; a log of the learner that reaches the cluster's"
		if m := byField(in, refuted, "M10", check.FieldLearnerNeverStarted, check.FieldLearnerBehind); m != nil {
			return m
		}
		m := byField(in, refuted, "M10", check.FieldLearnerJustAdded, check.FieldLearnerBlocks)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var promotedUnstarted = Cause{
	ID: "nonstarted-learner-promoted", Title: "a learner that never started was promoted",
	Doc: `Up to 3.4.23 and 3.5.6 a learner could be promoted before it had ever started. It then counts for the majority and can not vote.
Strong when the log promotes a member of which neither a publish entry nor a name with client URLs is known.`,
	Affected: []string{"3.4.0 - 3.4.23", "3.5.0 - 3.5.6"},
	FixedIn:  []string{"3.4.24", "3.5.7"},
	Refs:     refs("etcd-io/etcd", 15096),
	LookAlikes: "buckets of 3.5.1 - 3.5.19, which lack names: publish entries count; quorum-lost-after-member-add, " +
		"where the voter was added as one",
	Recovery: "start the member at its peer URL, or remove it while a majority without it is up",
	Loss:     "availability",
	Match: func(in *Input) *Match {
		for _, f := range in.Findings["M05"] {
			for _, m := range in.Members {
				if !m.HasWAL() || !slices.Contains(f.Members, m.Label()) {
					continue
				}
				for _, c := range m.WAL.Conf {
					if !c.Refused && c.Change.Member != nil && c.Change.Member.IsPromote &&
						c.Change.Type == dumplog.ConfChangeAddNode && names(f, c.Change.NodeID) {
						return &Match{Certainty: Strong, Members: f.Members, Because: ids(in, "M05"),
							RefutedBy: "a publish entry of the member in a part of the log that was purged"}
					}
				}
			}
		}
		return nil
	},
}

// names tells whether the finding's evidence is about the member.
func names(f check.Finding, id dumplog.ID) bool {
	return slices.ContainsFunc(f.Evidence, func(e check.Evidence) bool { return string(e.Key) == id.String() })
}
