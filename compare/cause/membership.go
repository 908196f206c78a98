package cause

var wipedMember = Cause{
	ID: "wiped-member-rejoined-same-id", Title: "a member lost its data dir and came back under its old ID",
	Doc: `The data dir was deleted or lost without removing the member from the cluster, and the server was started again. A bootstrap member gets
the same ID from the same flags. The leader believes that it still holds what it once acknowledged and sends a commit index beyond its log:
it panics with "tocommit(N) is out of range". After a change of leader it may be caught up by a snapshot.
Proven by a log that holds bootstrap entries only (or nothing before a received snapshot) next to entries that this very member proposed or
published earlier in other members' logs.`,
	Refs:       refs("etcd-io/etcd", 3519, 10817, 13509, 16220, 20269, 21178),
	LookAlikes: "a member added legitimately (its conf change comes first, no earlier entries of it exist); a log purged from the front (first segment is not 0)",
	Recovery:   "stop it for good; etcdctl member remove; set the data dir aside; etcdctl member add; start with --initial-cluster-state existing",
	Loss:       "its acknowledgements are forgotten: a committed entry may be lost if another member failed in the same period",
	Match: func(in *Input) *Match {
		if len(in.Findings["M04"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "M04"), Because: ids(in, "M04"),
			RefutedBy: "a conf change that added this ID after the last entry the member proposed"}
	},
}

var quorumLostAfterAdd = Cause{
	ID: "quorum-lost-after-member-add", Title: "a voter that can not be reached was added and the majority was lost",
	Doc: `Adding a voter raises the majority at once. When the new voter never starts (wrong peer URL, host not there) and another member is down,
the voters that run are too few: no leader, no writes, and the configuration can not be changed back through raft.
strict-reconfig-check prevents it; it must have been off, or the cluster lost another member later.`,
	LookAlikes: "a new member that simply has not been started yet",
	Recovery:   "start the member that was down (its data dir is intact and it only lags), so that a majority runs again; then etcdctl member remove the voter that never started",
	Loss:       "none, if the member that was down can be started; otherwise force-new-cluster loses what only it held",
	Match: func(in *Input) *Match {
		for _, f := range in.Findings["M05"] {
			if f.Class == "membership" {
				return &Match{Certainty: Strong, Members: f.Members, Because: ids(in, "M05"), RefutedBy: "the voter answers at its peer URL, or has a data dir of its own"}
			}
		}
		return nil
	},
}

var foreignCluster = Cause{
	ID: "foreign-cluster", Title: "sources of different clusters were mixed",
	Doc: `The cluster ID in the WAL metadata differs. Either data dirs of two clusters were collected together, or one backup was restored several
times, each time as a cluster of its own.`,
	LookAlikes: "none: the cluster ID never changes in a cluster's life",
	Recovery:   "sort the sources by cluster ID; if they should be one cluster, choose one and reseed the others from it",
	Loss:       "writes made to the clusters that are given up",
	Match: func(in *Input) *Match {
		if len(in.Findings["M01"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "M01"), Because: ids(in, "M01"), RefutedBy: "equal cluster IDs in the WAL metadata"}
	},
}
