package check

// All returns every check in the order they are run and reported. A new check is one value in a file of its topic and one
// line here.
func All() []Check {
	return []Check{
		distinctMembers,
		partsPresent,
		oneCluster,
		walRecords,
		walTail,
		walSequence,
		snapFiles,
		snapNotAheadOfDB,
		dbMetas,
		dbPages,
		dbRows,
		dbNotAheadOfLog,
		dbTermMatchesLog,
		mvccTruths,
		logsMatch,
		commitInLog,
		committedKept,
		membersLevel,
		ackedLogKept,
		authRevisionEqual,
		authRevisionMatchesLog,
		noStaleAuthRefusal,
		authContentEqual,
		dbMatchesLog,
		sameOutcome,
		revisionsEqual,
		keysEqual,
		leasesEqual,
		leasesOfKeysExist,
		memberListsEqual,
		memberListsAgree,
		learnerFlags,
		quorumPossible,
		alarms,
		compactionProgress,
		backupTrailer,
	}
}
