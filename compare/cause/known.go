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
	return slices.Concat(undetectedAuth, undetectedApply, undetectedMVCC, undetectedBackend,
		undetectedFiles, undetectedMembership, undetectedOperators)
}

var undetectedAuth = []Known{
	{"auth-token-provider-off-after-snapshot", "leases stop expiring because a leader that recovered by snapshot can not make its internal token"},
}

var undetectedApply = []Known{
	{"lease-ops-reapplied-on-restart", "a lease was granted or revoked a second time after a restart"},
	{"backend-not-rebound-after-recovery", "after recovery from a received database at start the index went to the closed one"},
	{"alarm-raise-index-stuck", "raising the same alarm again did not move the stored index"},
}

var undetectedMVCC = []Known{
	{"revision-below-compact-2016", "the current revision came back below the compact revision"},
	{"tombstone-only-key-not-indexed", "a key of which only a tombstone is left was not indexed at a restart"},
	{"restore-index-damage-320", "the key index was built wrongly while it was loaded"},
}

var undetectedBackend = []Known{
	{"defrag-drops-backend-options", "the database was opened with other options after a defragmentation; on Linux this leaves no mark in the file"},
	{"bbolt-rollback-keeps-allocations", "pages of a transaction that was rolled back stayed allocated"},
	{"bbolt-cursor-last-empty-page", "the last row of a bucket is not found because the last page is empty"},
}

var undetectedFiles = []Known{
	{"bootstrap-index-check-skipped", "a start did not notice that the database is older than the snapshot"},
	{"defrag-races-snapshot-install", "a defragmentation put the old database over one that was received meanwhile"},
	{"unsafe-no-fsync", "the server ran without fsync and lost the end of its log; no file tells the flag"},
}

var undetectedMembership = []Known{
	{"force-new-cluster-learner-panic", "a forced start fails because the log adds a learner"},
	{"learner-promotion-replay-36", "3.6 can not start because it replays a promotion that bucket members already shows"},
}

var undetectedOperators = []Known{
	{"restored-from-raw-db", "a cluster was restored from a bare database file"},
}
