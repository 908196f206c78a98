package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var wipedMember = Cause{
	ID: "wiped-member-rejoined-same-id", Title: "a member lost its data dir and came back under its old ID",
	Doc: `The data dir was deleted or lost without removing the member from the cluster, and the server was started again. A bootstrap member gets
the same ID from the same flags. The leader believes that it still holds what it once acknowledged and sends a commit index beyond its log:
it panics with "tocommit(N) is out of range". After a change of leader it may be caught up by a snapshot.
Proven by a log that holds bootstrap entries only (or nothing before a received snapshot) next to entries that this very member proposed or
published earlier in other members' logs; for one that was caught up since by what it served, behind a publish entry that its own log skips.`,
	Refs: refs("etcd-io/etcd", 3519, 10817, 13509, 16220, 20269, 21178),
	LookAlikes: "a member added legitimately (its conf change comes first, no earlier entries of it exist); a log " +
		"purged from the front (first segment is not 0)",
	Recovery: "stop it for good; etcdctl member remove; set the data dir aside; etcdctl member add; start with " +
		"--initial-cluster-state existing",
	Loss: "its acknowledgements are forgotten: a committed entry may be lost if another member failed in the same period",
	Match: func(in *Input) *Match {
		if len(in.Findings["M04"]) == 0 {
			return nil
		}
		return weigh(in, &Match{Certainty: Proof, Members: membersOf(in, "M04"), Because: ids(in, "M04"),
			RefutedBy: "a conf change that added this ID after the last entry the member proposed"})
	},
}

var quorumLostAfterAdd = Cause{
	ID: "quorum-lost-after-member-add", Title: "a voter that can not be reached was added and the majority was lost",
	Doc: `Adding a voter raises the majority at once. When the new voter never starts (wrong peer URL, host not there) and another member is down,
the voters that run are too few: no leader, no writes, and the configuration can not be changed back through raft.
strict-reconfig-check prevents it; it must have been off, or the cluster lost another member later.`,
	LookAlikes: "a new member that simply has not been started yet",
	Recovery: "start the member that was down (its data dir is intact and it only lags), so that a majority runs " +
		"again; then etcdctl member remove the voter that never started",
	Loss: "none, if the member that was down can be started; otherwise force-new-cluster loses what only it held",
	Match: func(in *Input) *Match {
		for _, f := range in.Findings["M05"] {
			if f.Class == "membership" {
				return &Match{Certainty: Strong, Members: f.Members, Because: ids(in, "M05"),
					RefutedBy: "the voter answers at its peer URL, or has a data dir of its own"}
			}
		}
		return nil
	},
}

var promotionNotPersisted = Cause{
	ID: "learner-promotion-not-persisted", Title: "a promoted learner is still marked a learner in bucket members",
	Doc: `From 3.5.1 to 3.5.19 a promotion reached the v2 store and raft, but not bucket members. 3.6 boots with the bucket (and repairs it at
start in most cases), 3.7 builds raft's voters from it: the quorum itself then changes.`,
	Affected:   []string{"3.5.1 - 3.5.19"},
	FixedIn:    []string{"3.5.20 (new promotions)", "3.6.0 (repairs at start)"},
	LookAlikes: "a learner that was not promoted (no conf change says so); meta/confState, which is stale after a restore",
	Recovery:   "restart all members on 3.5.24 or later, verify the buckets, then upgrade",
	Loss:       "none of data; an upgrade is blocked or changes the quorum",
	Match: func(in *Input) *Match {
		return learnerDrift(in, "learner", "a conf change that made it a learner again")
	},
}

var updateDropsLearner = Cause{
	ID: "member-update-drops-learner", Title: "updating a learner's peer URLs cleared its learner flag",
	Doc: `The update of a member overwrote all its raft attributes, the learner flag among them. The bucket then says voter while raft counts it as
a learner.
Proven with the update of the member behind its addition in the log; a hint where the log no longer holds it, because an edit of the bucket looks
the same.`,
	Affected:   []string{"3.4.0 - 3.4.45", "3.5.0 - 3.5.30", "3.6.0 - 3.6.11"},
	FixedIn:    []string{"3.5.31", "3.6.12", "3.7.0"},
	LookAlikes: "a promotion that this member has not applied yet",
	Recovery:   "remove the member and add it again",
	Loss:       "none; fault tolerance is lower than shown, and 3.7 makes it a voter at its next start",
	Match: func(in *Input) *Match {
		m := learnerDrift(in, "voter", "a promotion of the member")
		if m != nil && !updatedAfterAdd(in, m) {
			m.Certainty = Hint // the log that is left does not hold the update
		}
		return m
	},
}

// learnerDrift matches findings of M07 in which bucket members says so-and-so and raft the opposite.
func learnerDrift(in *Input, bucketSays, refutedBy string) *Match {
	m := &Match{Certainty: Proof, RefutedBy: refutedBy}
	for _, f := range in.Findings["M07"] {
		if e := f.Evidence[0]; e.Field == "isLearner" && e.Observed == bucketSays {
			m.Because = append(m.Because, f.ID)
			m.Members = append(m.Members, f.Members...)
		}
	}
	if len(m.Because) == 0 {
		return nil
	}
	return m
}

// updatedAfterAdd tells whether, of every learner that bucket members calls a voter, some log holds an update behind
// its addition.
func updatedAfterAdd(in *Input, m *Match) bool {
	for _, f := range in.Findings["M07"] {
		if !slices.Contains(m.Because, f.ID) {
			continue
		}
		added, updated := false, false
		for _, x := range in.Members {
			if !x.HasWAL() {
				continue
			}
			for _, c := range x.WAL.Conf {
				if !c.Refused && c.Change.NodeID.String() == string(f.Evidence[0].Key) {
					added = added || c.Change.Type == dumplog.ConfChangeAddLearnerNode
					updated = updated || added && c.Change.Type == dumplog.ConfChangeUpdateNode
				}
			}
		}
		if !updated {
			return false
		}
	}
	return true
}

var zombieMembers = Cause{
	ID: "zombie-members-v3-bucket", Title: "removed members are still in bucket members",
	Doc: `Old restore tools, force-new-cluster and lost writes left rows in bucket members that raft's configuration does not know. Releases that
boot with the bucket (3.5.0, 3.6 and later) then list and count them. Removing one through a running cluster of 3.6 makes every member
panic, now and at each start, because the v2 store has no such member (measured on 3.6.16).`,
	Affected:   []string{"up to 3.5.25"},
	FixedIn:    []string{"3.5.26 (cleans up)"},
	LookAlikes: "meta/confState, which is stale after a restore and proves nothing alone",
	Recovery: "up to 3.5: let every member start once on 3.5.26 or later of 3.5 and verify. On 3.6 never with " +
		"etcdctl member remove, which ends every server for good: mend one stopped member after the other with " +
		"etcd-medic repair meta --members-from-raft, or clone all. From 3.7 on: etcdctl member remove",
	Loss: "none of data; loss of quorum after an upgrade",
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "a conf change that added the member again after its removal", "M07", "zombie"))
	},
}

var foreignCluster = Cause{
	ID: "foreign-cluster", Title: "sources of different clusters were mixed",
	Doc: `The cluster ID in the WAL metadata differs; strong where a backup, which carries none, lists only members that the data dirs never knew. Either data dirs of two clusters were collected together, or one backup was restored several
times, each time as a cluster of its own.`,
	LookAlikes: "a cluster that was restored from this one's backup: it has another ID, and its keys go on from the " +
		"old ones (restore-without-revision-bump, restored-one-member-only)",
	Recovery: "sort the sources by cluster ID; if they should be one cluster, choose one and reseed the others from it",
	Loss:     "writes made to the clusters that are given up",
	Match: func(in *Input) *Match {
		m := proofOf(in, "M01", "equal cluster IDs in the WAL metadata",
			func(f check.Finding) bool { return f.Class == "foreign-cluster" })
		if m == nil {
			return nil
		}
		ids := map[dumplog.ID]bool{}
		for _, x := range in.Members {
			if x.ClusterID != 0 {
				ids[x.ClusterID] = true
			}
		}
		if len(ids) == 1 {
			m.Certainty, m.RefutedBy = Strong, "the removal of every member that the backup lists, in the log of "+
				"this cluster"
		}
		return m
	},
}

// foreign lists the findings about sources of different clusters, without those about one cluster ID that was altered.
func foreign(in *Input) []string {
	out := []string{}
	for _, f := range in.Findings["M01"] {
		if f.Class == "foreign-cluster" {
			out = append(out, f.ID)
		}
	}
	return out
}
