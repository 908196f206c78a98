package check

import "slices"

// All returns every check in the order they are run and reported. A new check is one value in a file of its topic and
// one line in the list of its family below; prose/ID.md has its text.
func All() []Check {
	return slices.Concat(sourceChecks(), indexChecks(), stateChecks(), backupChecks(),
		[]Check{serverLogsFit, SecondOpinion})
}

// sourceChecks are about the sources and their files.
func sourceChecks() []Check {
	return []Check{
		distinctMembers,
		partsPresent,
		partsTogether,
		oneMoment,
		oneCluster,
		oneHistory,
		walRecords,
		walTail,
		walSequence,
		recordsReadable,
		logReachesBack,
		snapRecordsFit,
		snapFiles,
		snapNotAheadOfDB,
		snapLeftovers,
		receivedIsUsed,
		dbMetas,
		rootListsBuckets,
		dbPages,
		dbRows,
		noFreelistPage,
		lastLeafFilled,
		dbNotAheadOfLog,
		dbTermMatchesLog,
	}
}

// indexChecks compare how far database and log reach, and check raft's own state.
func indexChecks() []Check {
	return []Check{
		mvccInvariants,
		compactionLeftNothing,
		indexPresent,
		indexPossible,
		indexCanMove,
		nothingAboveIndex,
		appliedOnce,
		forcedCluster,
		logsMatch,
		oneLeader,
		oneVote,
		commitOnQuorum,
		commitNeverFalls,
		noJointConfig,
		commitInLog,
		committedKept,
		membersAtSameIndex,
		ackedLogKept,
		logNotOlder,
	}
}

// stateChecks are about auth, leases, keys, members and alarms.
func stateChecks() []Check {
	return []Check{
		authRevisionEqual,
		authRevisionMatchesLog,
		noStaleAuthRefusal,
		authContentEqual,
		authEnabledEqual,
		passwordsEqual,
		passwordsFromLog,
		authStructure,
		secretsInLog,
		rightsKept,
		leaseRevokesEqual,
		leaseTTLs,
		leaseIDs,
		leaseCheckpoints,
		revokesByLeader,
		leasesExpire,
		leaseLives,
		dbMatchesLog,
		sameOutcome,
		revisionsEqual,
		keysEqual,
		recordsEqual,
		leasesEqual,
		leasesOfKeysExist,
		memberListsEqual,
		memberListsAgree,
		memberRowsTrue,
		confStateKnown,
		learnerFlags,
		quorumPossible,
		notRemoved,
		belongsHere,
		learnersMove,
		learnerReplay,
		noV2Content,
		v2StoreTrue,
		versionsFit,
		alarms,
		alarmsEqual,
		alarmMembers,
		corruptAlarmTrue,
		compactionProgress,
		compactTombstones,
		revisionNotBelowCompact,
		noStrayTombstones,
		compactMarksFit,
	}
}

// backupChecks are about backups.
func backupChecks() []Check {
	return []Check{
		backupTrailer,
		backupSize,
		backupBuckets,
		backupMembers,
		backupAuth,
		backupVersions,
		backupRevisions,
		backupAgainst,
		backupDrill, backupChain, backupFresh, backupSeries,
	}
}
