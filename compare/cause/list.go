package cause

import "slices"

// All returns the catalogue in the order of preference: of two causes that fit, the earlier is named first. A new cause
// is one value in a file of its family and one line in the list of its family below; its text is prose/ID.md.
func All() []Cause {
	return append(known(), unexplained)
}

func known() []Cause {
	return slices.Concat(identityCauses(), fileCauses(), contentCauses(), memberCauses(), sideCauses())
}

// identityCauses are about identity and control state, which come first in history.
func identityCauses() []Cause {
	return []Cause{
		restoredSplit,
		restoredOneOnly,
		twinClusters,
		forcedDropsApplied,
		clonedDir,
		foreignCluster,
		noRevisionBump,
		authRevisionReplay,
		authRevisionUnequal,
		walRemoved,
		wipedMember,
		restoredFromDifferent,
		baseMissingOnJoiners,
	}
}

// fileCauses are about damaged, missing and left-over files, and files of different times.
func fileCauses() []Cause {
	return []Cause{
		dbRemoved,
		backupAsDB,
		tornLiveCopy,
		walTornTail,
		walTornTailNotRepaired,
		walHoleZeroed,
		walCRCMismatch,
		walSegmentMissing,
		walSegmentRenamed,
		walRecordAltered,
		walEntryIndexGap,
		logEntryAltered,
		hardStateBeyondLog,
		walPurgedWhileNeeded,
		snapFileDamaged,
		backupTruncated,
		snapRemoved,
		dbTruncated,
		backupRacesRename,
		bucketNamesRevisions,
		bboltPageDamage,
		bboltFreelist2017,
		ext4FastCommit,
		bboltMetaDamage,
		cindexAltered,
		cindexFrozen,
		backendNewerThanLogStart,
		alarmListIndexStuck,
		authDeniedIndexStuck,
		alarmRaiseIndexStuck,
		cindexOverwritten,
		snapDBNotSynced,
		dirRolledBack,
		cindexBelowSnapshot34,
		snapDBMissingSecond,
		metaTermBehind,
		timesDiffer,
		cindexMissing,
		singleMemberAck,
		walTailLost,
		cindexNotSavedByDefrag,
		backupHashMismatch,
		backupWithoutHash,
	}
}

// contentCauses are about content that members hold in excess or lack.
func contentCauses() []Cause {
	return []Cause{
		leaseRevokeWithoutToken,
		negativeLeaseID,
		danglingLease,
		revisionDecrease,
		partialWriteTxn,
		defragOrphanMerged,
		valueBytesAltered,
		txnRangeStripped,
		authPasswordEmptied,
		authCacheAfterStart,
		authCacheAfterSnapshot,
		cindexAheadOfApply,
		authStructureBroken,
		restoreIndex320,
		leaseOpsReapplied,
		compactionHashAfterResume,
		corruptAlarmMisleading,
		mvccContradiction,
		orphanAlarm,
		authCacheStale,
		deleteVisibleLate,
		changedOutsideLog,
	}
}

// memberCauses are about the member list.
func memberCauses() []Cause {
	return []Cause{
		promotedUnstarted,
		quorumLostAfterAdd,
		forcedKeepsLearners,
		forcedUsed,
		removedDir,
		stuckLearner,
		belowQuorum,
		promotionNotPersisted,
		promotionPropagated,
		updateDropsLearner,
		zombieMembers,
		restoreKeepsMembers,
		bucketIsQuorum,
		identityMismatch,
		doubleVote,
		twoLeaders,
		logDivergence,
		hardStateRegress,
		jointConfig,
	}
}

// sideCauses never explain a verdict.
func sideCauses() []Cause {
	return []Cause{
		nospaceAlarm,
		tombstoneDropped,
		authSecretsInWAL,
		rbacBypass,
		leaseTTLClamp,
		leaseCheckpointMixed,
		leaseCheckpointNotPersisted,
		leaseRevokedByDeposed,
		tokenProviderOff,
		backendNotRebound,
		indexCheckSkipped,
		defragRacesInstall,
		belowCompact2016,
		tombstoneNotIndexed,
		cursorLastEmpty,
		unsafeNoFsync,
		restoredFromRaw,
		promotionReplay36,
		forcedLearnerPanic,
		secondTool,
		defragLeftover,
		snapDirLeftovers,
		walEntryOver10MB,
		walCRCFalseAlarm,
		versionMismatch,
		v2Content,
	}
}
