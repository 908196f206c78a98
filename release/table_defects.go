package release

// Defects that do not change how requests are executed. The catalog of causes searches for their traces.
var (
	// DeleteSeenLate: the read buffer of the backend missed deletes.
	DeleteSeenLate = &Rule{
		ID:     "delete-seen-late",
		What:   "an entry may still see a user or role that the entry before deleted",
		In:     Spans{{Until: Release{4, 30}}, {From: Release{5, 0}, Until: Release{5, 12}}},
		Source: "server/mvcc/backend/batch_tx.go, UnsafeDelete",
	}
	// PartialTxn: the part that had been executed was committed before the panic.
	PartialTxn = &Rule{
		ID:     "partial-txn",
		What:   "a write transaction that fails in the middle is stored in part before the server stops",
		In:     within(Release{5, 5}, Release{5, 17}),
		Source: "server/etcdserver/apply.go, Txn",
	}
	// DefragRacesInstall: the old database replaced the new one.
	DefragRacesInstall = &Rule{
		ID:   "defrag-races-install",
		What: "a defragmentation may end after a received database was installed, and replace it",
		In: Spans{{Until: Release{4, 38}}, {From: Release{5, 0}, Until: Release{5, 23}},
			{From: Release{6, 0}, Until: Release{6, 5}}},
		Source: "server/etcdserver/server.go, applySnapshot",
	}
	// AlarmQueryKeepsIndex and RefusedKeepsIndex: the index lagged behind the snapshots.
	AlarmQueryKeepsIndex = &Rule{
		ID:     "alarm-query-keeps-index",
		What:   "a query for alarms does not move the index",
		In:     within(Release{5, 3}, Release{5, 5}),
		Source: "server/etcdserver/server.go, applyEntryNormal",
	}
	// RefusedKeepsIndex: see AlarmQueryKeepsIndex.
	RefusedKeepsIndex = &Rule{
		ID:     "refused-keeps-index",
		What:   "an entry that auth refuses does not move the index",
		In:     within(Release{5, 3}, Release{5, 4}),
		Source: "server/etcdserver/server.go, applyEntryNormal",
	}
	// TornWriteRefused: a record cut at a sector boundary was an error instead of the end of the log.
	TornWriteRefused = &Rule{
		ID:     "torn-write-refused",
		What:   "a log that a crash cut inside a record does not open",
		In:     within(Release{5, 5}, Release{5, 7}),
		Source: "server/wal/decoder.go, decodeRecord",
	}
	// PromotionReplayFails: the promotion was looked up in bucket members instead of the v2 store.
	PromotionReplayFails = &Rule{
		ID:     "promotion-replay-fails",
		What:   "a start fails that replays a promotion which bucket members already has",
		In:     within(Release{6, 0}, Release{6, 4}),
		Source: "server/etcdserver/api/membership/cluster.go @ v3.6.4, PromoteMember",
	}
	// PurgedLogRefused: the CRC record at the head of the first segment was compared with a chain of 0.
	PurgedLogRefused = &Rule{
		ID:     "purged-log-refused",
		What:   "a start reports a crc mismatch on a log whose first segments were purged",
		In:     Spans{{From: Release{3, 21}, Until: Release{3, 22}}, {From: Release{4, 8}, Until: Release{4, 9}}},
		Source: "wal/wal.go @ v3.4.9, ValidSnapshotEntries",
	}
	// ResumedHashDiffers: the hash of a compaction that was resumed at a start covered less than on the other members.
	ResumedHashDiffers = &Rule{
		ID:     "resumed-hash-differs",
		What:   "hashes may differ, and raise CORRUPT, after a compaction that a restart interrupted",
		In:     Spans{{Until: Release{4, 27}}, {From: Release{5, 0}, Until: Release{5, 10}}},
		Source: "server/mvcc/kvstore.go @ v3.5.10, hashByRev",
	}
	// ForcedLearnerFails concerns --force-new-cluster.
	ForcedLearnerFails = &Rule{
		ID:     "forced-learner-fails",
		What:   "a forced start fails if the log after the snapshot adds a learner",
		In:     within(Release{4, 0}, Release{4, 14}),
		Source: "etcdserver/raft.go @ v3.4.14, getIDs",
	}
	// BackendNotRebound: the index was stored in the closed database.
	BackendNotRebound = &Rule{
		ID:     "backend-not-rebound",
		What:   "after a start that installed a received database the index is not stored",
		In:     within(Release{5, 0}, Release{5, 2}),
		Source: "server/etcdserver/server.go @ v3.5.2, NewServer",
	}
	// IndexCheckSkipped: the check compared with the index of the snapshot only when one was newer.
	IndexCheckSkipped = &Rule{
		ID:   "index-check-skipped",
		What: "a start does not notice that the database is older than the snapshot",
		In: Spans{{From: Release{3, 21}, Until: Release{4, 0}}, {From: Release{4, 8}, Until: Release{4, 29}},
			{From: Release{5, 0}, Until: Release{5, 12}}},
		Source: "server/etcdserver/server.go @ v3.5.12, NewServer",
	}
	// StrayTombstones: kept tombstones were not indexed at a start, so the next compaction did not see them.
	StrayTombstones = &Rule{
		ID:     "stray-tombstones",
		What:   "tombstones that a compaction kept may stay for good",
		In:     Spans{{From: Release{4, 34}, Until: Release{4, 36}}, {From: Release{5, 16}, Until: Release{5, 18}}},
		Source: "server/mvcc/key_index.go @ v3.5.18, restoreTombstone",
	}
	// SnapshotIndexReplaced: the index of the running server replaced that of the received database.
	SnapshotIndexReplaced = &Rule{
		ID:     "snapshot-index-replaced",
		What:   "the index from before a received snapshot may be stored in the new database",
		In:     within(Release{5, 0}, Release{5, 3}),
		Source: "server/etcdserver/server.go @ v3.5.3, applySnapshot",
	}
	// IndexBelowSnapshot has single reports on 3.2 and 3.3, and no fix.
	IndexBelowSnapshot = &Rule{
		ID:     "index-below-snapshot",
		What:   "the newest snapshot may be above the stored index although no database was received",
		In:     within(Release{2, 0}, Release{5, 0}),
		Source: "etcdserver/server.go @ v3.4.45, snapshot",
	}
	// RaisedAlarmKeepsIndex has no release with a fix.
	RaisedAlarmKeepsIndex = &Rule{
		ID:     "raised-alarm-keeps-index",
		What:   "raising an active alarm does not move the index",
		In:     within(Release{5, 0}, Release{7, 0}),
		Source: "server/etcdserver/api/v3alarm/alarms.go, Activate",
	}
	// TokensStopAtSnapshot: simple tokens did not work after a received snapshot turned auth on.
	TokensStopAtSnapshot = &Rule{
		ID:     "tokens-stop-at-snapshot",
		What:   "a member that a snapshot switched to auth accepts no simple tokens",
		In:     Spans{{From: Release{3, 0}, Until: Release{4, 19}}, {From: Release{5, 0}, Until: Release{5, 5}}},
		Source: "server/auth/store.go @ v3.5.5, Recover",
	}
	// RevokeWithoutUser: members of 3.2 proposed such requests, also in clusters with members of 3.3.
	RevokeWithoutUser = &Rule{
		ID:     "revoke-without-user",
		What:   "clusters of this version may have members that revoke expired leases without a user while auth is on",
		In:     until(Release{4, 0}),
		Source: "etcdserver/server.go @ v3.2.31, LeaseRevoke",
	}
	// ZombieRemovalPanics: the member is in bucket members and not in the v2 store.
	ZombieRemovalPanics = &Rule{
		ID:     "zombie-removal-panics",
		What:   "removing a member that only bucket members has stops every server, and each start after it",
		In:     within(Release{6, 0}, Release{7, 0}),
		Source: "server/etcdserver/api/membership/storev2.go @ v3.6.0, mustDeleteMemberFromStore",
	}
)

var defects = []*Rule{DeleteSeenLate, PartialTxn, DefragRacesInstall, AlarmQueryKeepsIndex, RefusedKeepsIndex,
	TornWriteRefused,
	PromotionReplayFails, PurgedLogRefused, ResumedHashDiffers, ForcedLearnerFails, BackendNotRebound,
	IndexCheckSkipped, StrayTombstones, SnapshotIndexReplaced, IndexBelowSnapshot, RaisedAlarmKeepsIndex,
	TokensStopAtSnapshot, RevokeWithoutUser, ZombieRemovalPanics}
