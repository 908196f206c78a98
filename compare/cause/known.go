package cause

import "slices"

// Known is a cause that is known to exist but that no matcher of the catalogue finds yet. The documents list it, so that the
// absence of a verdict is not read as the absence of the cause.
type Known struct {
	ID, Title string
}

// Undetected returns the known causes without a matcher, one line each. Whoever writes the matcher deletes the line; a test
// holds that no ID stands in both lists.
func Undetected() []Known {
	return slices.Concat(undetectedAuth, undetectedApply, undetectedMVCC, undetectedLease, undetectedBackend,
		undetectedFiles, undetectedMembership, undetectedOperators, undetectedRaft)
}

var undetectedAuth = []Known{
	{"auth-cache-stale-after-snapshot", "a member that received a snapshot keeps the permissions it knew before"},
	{"auth-token-provider-off-after-snapshot", "leases stop expiring because a leader that recovered by snapshot can not make its internal token"},
	{"backend-delete-visible-late", "a deleted auth, alarm or member row is still seen by the entry that follows"},
}

var undetectedApply = []Known{
	{"lease-ops-reapplied-on-restart", "a lease was granted or revoked a second time after a restart"},
	{"backend-not-rebound-after-recovery", "after recovery from a received database at start the index went to the closed one"},
	{"partial-write-txn", "part of a transaction that failed with a panic reached the disk"},
	{"alarm-raise-index-stuck", "raising the same alarm again did not move the stored index"},
}

var undetectedMVCC = []Known{
	{"revision-below-compact-2016", "the current revision came back below the compact revision"},
	{"tombstone-only-key-not-indexed", "a key of which only a tombstone is left was not indexed at a restart"},
	{"restore-index-damage-320", "the key index was built wrongly while it was loaded"},
}

var undetectedLease = []Known{
	{"lease-revoked-by-deposed-leader", "a leader that had been replaced revoked leases that were kept alive elsewhere"},
}

var undetectedBackend = []Known{
	{"defrag-orphan-merged", "a file left by an interrupted defragmentation was used again and brought old rows back"},
	{"defrag-drops-backend-options", "the database was opened with other options after a defragmentation"},
	{"backup-races-rename", "a backup was read from another file than its meta page"},
	{"bbolt-freelist-defects-2017", "the freelist page was overwritten or its count is wrong"},
	{"bbolt-rollback-keeps-allocations", "pages of a transaction that was rolled back stayed allocated"},
	{"bbolt-cursor-last-empty-page", "the last row of a bucket is not found because the last page is empty"},
	{"ext4-fast-commit", "a defect of the kernel's file system lost pages at a power loss"},
	{"bucket-names-are-revisions", "the list of buckets shows rows of bucket key"},
}

var undetectedFiles = []Known{}

var undetectedMembership = []Known{
	{"learner-promotion-propagated", "a wrong learner flag reached further members by snapshot"},
	{"restore-keeps-old-members", "a restore by a tool of 3.4 or older kept the members of the old cluster"},
	{"force-new-cluster-drops-applied-entries", "force-new-cluster dropped entries that the database had applied"},
	{"force-new-cluster-used", "a cluster was forced from one member"},
	{"force-new-cluster-keeps-learners", "learners survived force-new-cluster"},
	{"force-new-cluster-learner-panic", "a forced start fails because the log adds a learner"},
	{"learner-promotion-replay-36", "3.6 can not start because it replays a promotion that bucket members already shows"},
	{"nonstarted-learner-promoted", "a learner that never started was promoted"},
	{"v2-content-blocks-36", "the v2 store holds keys, and 3.6 refuses to start"},
	{"members-bucket-is-quorum-37", "bucket members differs between members of 3.7, which count their quorum by it"},
	{"removed-member-data-dir", "the data dir is that of a member that was removed"},
	{"member-identity-mismatch", "the data dir is that of another member than the one it is taken for"},
	{"same-token-twin-clusters", "two clusters have the same cluster ID and member IDs"},
	{"stuck-learner", "a learner that was added never caught up"},
}

var undetectedOperators = []Known{
	{"data-dir-cloned-running-twice", "a data dir was copied and two processes ran under one identity"},
	{"torn-live-copy", "the data dir was copied while the server wrote to it"},
	{"restore-from-different-snapshots", "the members of a restored cluster started from different backups"},
	{"restore-split-into-single-clusters", "every host restored a cluster of its own"},
	{"restored-one-member-only", "one member was restored while the others went on"},
	{"restored-base-missing-on-joiners", "members that joined a restored one lack the data of the backup"},
	{"restore-without-revision-bump", "revisions went back at a restore"},
	{"saved-snapshot-used-as-db", "a backup file was put in the place of the database"},
	{"restored-from-raw-db", "a cluster was restored from a bare database file"},
	{"db-or-snap-dir-removed", "the database was removed and the log kept"},
	{"wal-removed-db-kept", "the log was removed and the database kept"},
	{"snap-files-removed", "the .snap files were removed"},
	{"downgrade-or-storage-version-mismatch", "the stored versions do not fit each other or the server"},
	{"db-in-use-by-second-tool", "another program changed the stopped database"},
}

var undetectedRaft = []Known{
	{"committed-entry-below-quorum", "fewer logs than a majority hold a committed entry"},
	{"raft-log-divergence", "two logs hold different committed entries at one index"},
	{"double-vote", "a member voted for two candidates in one term"},
	{"hardstate-regress", "the stored term or commit index went back inside of one log"},
	{"two-leaders-one-term", "two leaders proposed entries in one term"},
	{"joint-config-left", "a joint configuration is stored"},
}
