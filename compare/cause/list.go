package cause

// All returns the catalogue in the order of preference: of two causes that fit, the earlier is named first. A new cause is
// one value in a file of its family and one line here.
func All() []Cause {
	return append(known(), unexplained())
}

func known() []Cause {
	return []Cause{
		foreignCluster,
		authRevisionReplay,
		authRevisionUnequal,
		wipedMember,
		walTornTail,
		walCRCMismatch,
		walSegmentMissing,
		snapFileDamaged,
		backupTruncated,
		dbTruncated,
		bboltPageDamage,
		bboltMetaDamage,
		dirRolledBack,
		timesDiffer,
		backupHashMismatch,
		leaseRevokeWithoutToken,
		backupWithoutHash,
		negativeLeaseID,
		danglingLease,
		valueBytesAltered,
		txnRangeStripped,
		cindexAheadOfApply,
		authStructureBroken,
		compactionHashAfterResume,
		corruptAlarmMisleading,
		mvccContradiction,
		orphanAlarm,
		nospaceAlarm,
		revisionDecrease,
		tombstoneDropped,
		authSecretsInWAL,
		quorumLostAfterAdd,
		promotionNotPersisted,
		updateDropsLearner,
		zombieMembers,
		leaseTTLClamp,
		leaseCheckpointMixed,
		leaseCheckpointNotPersisted,
	}
}
