package release

// Rules of the key space and of leases.
var (
	// CompactKeepsTombstone: before, the tombstone whose revision is the compact revision was deleted.
	CompactKeepsTombstone = &Rule{
		ID:     "compact-keeps-tombstone",
		What:   "a compaction keeps a tombstone at the compact revision",
		In:     since(Release{4, 34}, Release{5, 16}),
		Source: "server/mvcc/key_index.go, compact",
	}
	// RestoreCountsFinished: before, the current revision was that of the newest record.
	RestoreCountsFinished = &Rule{
		ID:     "restore-counts-finished",
		What:   "the current revision is at least the finished compact revision after a start",
		In:     since(Release{0, 13}),
		Source: "mvcc/kvstore.go @ v3.0.13, restore",
	}
	// RestoreCountsScheduled: before, the current revision could fall at a start after a compaction.
	RestoreCountsScheduled = &Rule{
		ID:     "restore-counts-scheduled",
		What:   "the current revision is at least the scheduled compact revision after a start",
		In:     since(Release{4, 32}, Release{5, 14}),
		Source: "server/mvcc/kvstore.go, restore",
	}
	// RestoreKeepsTombstone has no effect on reads.
	RestoreKeepsTombstone = &Rule{
		ID:     "restore-keeps-tombstone",
		What:   "a tombstone without an older revision is indexed at a start",
		In:     since(Release{4, 36}, Release{5, 18}),
		Source: "server/mvcc/key_index.go, restoreTombstone",
	}
	// HashKVAtCompact concerns the lowest revision that can be hashed.
	HashKVAtCompact = &Rule{
		ID:     "hashkv-at-compact",
		What:   "HashKV answers at the compact revision itself",
		In:     since(Release{4, 27}, Release{5, 10}),
		Source: "server/mvcc/kvstore.go, hashByRev",
	}
	// LeasesOfAllIDs: before, leases with a negative ID were not loaded at a start.
	LeasesOfAllIDs = &Rule{
		ID:     "leases-of-all-ids",
		What:   "leases with a negative ID are loaded at a start",
		In:     since(Release{4, 20}, Release{5, 3}),
		Source: "server/lease/lessor.go, unsafeGetAllLeases",
	}
	// LeaseCheckpoints are entries that 3.3 does not know.
	LeaseCheckpoints = &Rule{
		ID:     "lease-checkpoints",
		What:   "leaders checkpoint the remaining TTL of leases",
		In:     since(Release{4, 0}),
		Source: "server/lease/lessor.go, Checkpoint",
	}
	// CheckpointsStored: before, a restart lost them. They are stored only with an option, or at cluster version 3.6.
	CheckpointsStored = &Rule{
		ID:     "checkpoints-stored",
		What:   "remaining TTLs are stored, with the persist option or at cluster version 3.6",
		In:     since(Release{4, 20}, Release{5, 2}),
		Source: "server/lease/lessor.go, shouldPersistCheckpoints",
	}
	// CheckpointsByCluster depends on the cluster version, not on the server's.
	CheckpointsByCluster = &Rule{
		ID:     "checkpoints-by-cluster",
		What:   "at this cluster version remaining TTLs are stored without an option",
		In:     since(Release{6, 0}),
		Source: "server/lease/lessor.go, shouldPersistCheckpoints",
	}
	// RevokeChecksLeader: before, a replaced leader could still revoke leases.
	RevokeChecksLeader = &Rule{
		ID:     "revoke-checks-leader",
		What:   "a leader makes sure that it still leads before it revokes expired leases",
		In:     since(Release{4, 31}, Release{5, 13}),
		Source: "server/etcdserver/server.go, ensureLeadership",
	}
	// StorageVersion is the row meta/storageVersion.
	StorageVersion = &Rule{
		ID:     "storage-version",
		What:   "bucket meta holds the storage version",
		In:     since(Release{6, 0}),
		Source: "server/storage/schema/schema.go @ v3.6.0",
	}
)

var storeRules = []*Rule{CompactKeepsTombstone, RestoreCountsFinished, RestoreCountsScheduled, RestoreKeepsTombstone,
	HashKVAtCompact, LeasesOfAllIDs, LeaseCheckpoints, CheckpointsStored, CheckpointsByCluster, RevokeChecksLeader,
	StorageVersion}
