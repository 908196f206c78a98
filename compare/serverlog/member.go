package serverlog

var memberMessages = []Message{
	{
		ID: "already-bootstrapped", Pattern: `member (?P<member>[0-9a-f]+) has already been bootstrapped`,
		Means: "The member starts without a log as a new one, but its peers know it as started.", OnDisk: "There is no *.wal file: the dir was wiped or mounted empty.",
		Versions: "all", Causes: []string{"wal-removed-db-kept", "wiped-member-rejoined-same-id"}, Checks: []string{"X02"}, Rules: []string{"P01"},
		Do: []string{"do not switch it to existing with the same ID", "remove the member, add it again, start it empty with initial-cluster-state existing"},
	},
	{
		ID: "member-count-unequal", Pattern: `member count is unequal|PeerURLs: no match found for existing member|unmatched member while checking PeerURLs`,
		Means: "The member list in the flags is not that of the cluster it wants to join.", OnDisk: "No log, initial-cluster-state existing: typical after a wipe without member remove and add.",
		Versions: "all", Causes: []string{"wiped-member-rejoined-same-id"}, Rules: []string{"P01"}, Do: []string{"take --initial-cluster from etcdctl member add"},
	},
	{
		ID: "local-name-not-found", Pattern: `couldn't find local name "(?P<name>[^"]*)" in the initial cluster configuration`,
		Means: "--name is not among the names of --initial-cluster.", OnDisk: "There is no log, so the flags count.",
		Versions: "all", Rules: []string{"P01"}, Do: []string{"correct --name or --initial-cluster; if the dir should have a log, find out where it went"},
	},
	{
		ID: "local-id-not-in-members", Pattern: `failed to find local ID in cluster members|failed to update; member unknown|fail(?:ed)? to find local member`,
		Means: "The server's own ID is not in its member list.", OnDisk: "WAL metadata and member list disagree: the dir of another member or cluster, or an edited bucket members.",
		Versions: "3.4+", Causes: []string{"member-identity-mismatch", "restored-one-member-only", "removed-member-data-dir"}, Checks: []string{"M03"}, Rules: []string{"P18"}, Do: []string{"give each member its own dir; see the IDs: etcd-medic inspect DIR"},
	},
	{
		ID: "permanently-removed", Pattern: `the member has been permanently removed from the cluster`,
		Means: "The cluster has removed this member.", OnDisk: "The log holds its own removal, or a peer says so.",
		Versions: "all", Causes: []string{"removed-member-data-dir"}, Checks: []string{"M07"}, Rules: []string{"P17"}, Do: []string{"add it again (etcdctl member add) and start it with an empty dir"},
	},
	{
		ID: "cluster-id-mismatch", Pattern: `request cluster ID mismatch|cluster ID mismatch|request sent was ignored .*cluster`,
		Means: "A peer belongs to another cluster.", OnDisk: "Different cluster IDs in the WAL metadata: restored separately, or bootstrapped twice.",
		Versions: "all", Causes: []string{"foreign-cluster", "restore-split-into-single-clusters"}, Checks: []string{"M01"}, Do: []string{"restore all members from one backup with the same flags: etcd-medic restore"},
	},
	{
		ID: "incompatible-cluster", Pattern: `incompatible with current running cluster|cannot fetch cluster info from peer urls`,
		Means: "The member wants to join, and the peers do not answer or are of versions too far apart.", OnDisk: "There is no log; the rest depends on the network and the versions.",
		Versions: "all", Rules: []string{"P01", "P22"}, Do: []string{"see that the peers are reachable; upgrade one minor at a time"},
	},
	{
		ID: "raft-attributes", Pattern: `create raftAttributes should never fail|failed to save member to store|failed to delete member from store|delete member should never fail`,
		Means: "A conf change is replayed over a v2 store that knows it already.", OnDisk: "Raft snapshot and log do not belong together.",
		Versions: "up to 3.5", Causes: []string{"wal-and-db-from-different-times"}, Checks: []string{"S02"}, Do: []string{"restore the whole dir from one moment, or reseed the member"},
	},
	{
		ID: "same-name-twice", Pattern: `two member with same name found|two members? with (?:the )?same name`,
		Means: "Two members share a name.", OnDisk: "Duplicate names in the member list.", Versions: "all", Checks: []string{"M03", "B04"}, Do: []string{"remove one of them and add it under a name of its own"},
	},
}

var runMessages = []Message{
	{
		ID: "data-inconsistency", Pattern: `found data inconsistency with peers|data corruption detected|checkInitialHashKV|corrupt(?:ion)? (?:alarm|check failed)|etcdserver: corrupt cluster`,
		Means: "A server's hash over its keys differs from its peers' at one revision. The alarm can name the wrong member: whoever leads accuses the others.", OnDisk: "The databases differ; where and since when only log and databases together tell.",
		Versions: "3.3+", Causes: []string{"auth-revision-replay", "cindex-ahead-of-apply", "txn-range-stripped-revision", "value-bytes-altered", "corrupt-alarm-misleading"}, Checks: []string{"K01", "K02", "K03", "A01", "M06"},
		Do: []string{"stop writes, copy the dirs of all members, run etcd-medic diagnose over all of them", "do not trust the majority or the alarm's member ID"},
	},
	{
		ID: "auth-old-revision", Pattern: `auth: revision in header is old`,
		Means: "A request was stamped with a lower auth revision than the member's own. When it happens while entries are applied, that member drops the write.", OnDisk: "The auth revisions of the members differ, if it goes on.",
		Versions: "all", Causes: []string{"auth-revision-replay", "auth-revision-unequal"}, Checks: []string{"A01", "A02", "A04"}, Do: []string{"compare auth revisions: etcd-medic diagnose over all members; do not restart members of 3.4.7 or older until then"},
	},
	{
		ID: "unhealthy-cluster", Pattern: `etcdserver: unhealthy cluster|re-configuration failed due to not enough started members`,
		Means: "A membership change was refused because too few members are connected.", OnDisk: "Nothing: the voters that the change would leave could not form a quorum.",
		Versions: "all", Causes: []string{"quorum-lost-after-member-add"}, Checks: []string{"M05"}, Do: []string{"start the members that are down first; add as learner"},
	},
	{
		ID: "slow-disk", Pattern: `slow fdatasync|failed to send out heartbeat on time|apply request took too long|apply entries took too long`,
		Means: "The disk or the machine is too slow; leaders change. This says nothing against the data.", OnDisk: "Nothing.",
		Versions: "all", Do: []string{"look at disk latency and load; the data needs no repair"},
	},
}
