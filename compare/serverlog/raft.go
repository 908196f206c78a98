package serverlog

var raftMessages = []Message{
	{
		ID: "tocommit-out-of-range", Pattern: `tocommit\((?P<commit>\d+)\) is out of range \[lastIndex\((?P<last>\d+)\)\]`,
		Means:    "The leader told this member that an entry is committed which it once acknowledged and no longer has: it lost its log, or a part of it.",
		OnDisk:   "The log ends before an index that the member has acknowledged: wiped and restarted under its old ID (lastIndex 0), put back from an older copy, or its tail was lost.",
		Versions: "all", Causes: []string{"wiped-member-rejoined-same-id", "data-dir-rolled-back", "wal-tail-lost", "unsafe-no-fsync"}, Checks: []string{"M04", "R03", "W02", "D04"},
		Do: []string{"do not start it again as it is: its vote can not be trusted", "remove the member (etcdctl member remove), set the dir aside, add it again and start it empty with initial-cluster-state existing"},
	},
	{
		ID: "commit-out-of-range", Pattern: `state\.commit (?P<commit>\d+) is out of range \[(?P<snapshot>\d+), (?P<last>\d+)\]`,
		Means:    "The HardState in the log says that more is committed than the log holds, or less than its raft snapshot covers.",
		OnDisk:   "HardState.commit lies outside of [index of the raft snapshot in use, last entry]: entries at the end of the log are gone, or snapshot and log are of different times.",
		Versions: "all", Causes: []string{"wal-tail-lost", "hardstate-beyond-log", "wal-hole-zeroed", "data-dir-rolled-back"}, Checks: []string{"R03", "W02"}, Rules: []string{"P11"},
		Do: []string{"see which entries are missing and who holds them: etcd-medic diagnose over all members", "reseed the member from one that holds them"},
	},
	{
		ID: "missing-log-entry", Pattern: `missing log entry \[last: (?P<last>\d+), append at: (?P<at>\d+)\]`,
		Means: "There is a gap between the raft snapshot in use and the first entry behind it.", OnDisk: "The first entry above the snapshot is not in the log.",
		Versions: "all", Causes: []string{"wal-entry-index-gap", "wal-segment-missing", "snap-files-removed"}, Checks: []string{"W03"}, Rules: []string{"P08"}, Do: []string{"reseed the member from a sound one"},
	},
	{
		ID: "unexpected-committed-entry", Pattern: `unexpected committed entry index|first index of committed entry\[\d+\] should <= appliedi\[\d+\]`,
		Means: "raft hands over a committed entry beyond the next one to apply.", OnDisk: "Raft snapshot, log and database are of different times.",
		Versions: "3.4+ (3.3: first index of committed entry)", Causes: []string{"wal-and-db-from-different-times", "data-dir-rolled-back"}, Checks: []string{"D05", "S02"}, Do: []string{"restore the whole dir from one moment, or reseed the member"},
	},
	{
		ID: "outdated-leader-snapshot", Pattern: `unexpected leader snapshot from outdated index`,
		Means: "The leader sent a snapshot that is not ahead of what this member has applied.", OnDisk: "The member's database is ahead of its log: it was put in from elsewhere, or the log was lost.",
		Versions: "all", Causes: []string{"wal-and-db-from-different-times", "wal-removed-db-kept"}, Checks: []string{"D04"}, Do: []string{"reseed the member with an empty dir"},
	},
	{
		ID: "no-voters", Pattern: `removed all voters|unable to restore config`,
		Means: "The configuration that raft is to take up leaves no voter.", OnDisk: "ConfState of the snapshot and the conf changes behind it contradict each other, or remove the only voter.",
		Versions: "3.4+", Causes: []string{"zombie-members-v3-bucket", "force-new-cluster-used"}, Checks: []string{"M03", "M07", "M05"}, Rules: []string{"P17", "P20"}, Do: []string{"look at every conf change: etcd-medic dumplog DIR --entry-type ConfigChange"},
	},
	{
		ID: "empty-confstate", Pattern: `empty confstate`,
		Means: "3.7 builds raft's configuration from bucket members and found none.", OnDisk: "Bucket members is empty, or there is no snapshot record with a ConfState.",
		Versions: "3.7+", Causes: []string{"members-bucket-is-quorum-37"}, Checks: []string{"M03"}, Rules: []string{"P20"}, Do: []string{"start the dir with the line that wrote it, then go to 3.7 by way of 3.6"},
	},
}
