package check

import "slices"

// Kind identifies what a finding states, independent of its texts: causes, the verdict and repairs match kinds and
// facts.
type Kind string

// The kinds; the table kinds says which checks state them, and what.
const (
	KindAlarmOfNoMember           Kind = "alarm-of-no-member"
	KindCorruptAlarmUnfounded     Kind = "corrupt-alarm-unfounded"
	KindCorruptAlarmNamesOther    Kind = "corrupt-alarm-names-other"
	KindAlarmAgainstLog           Kind = "alarm-against-log"
	KindEntriesAltered            Kind = "entries-altered"
	KindEntriesRenumbered         Kind = "entries-renumbered"
	KindCommittedEntriesDiffer    Kind = "committed-entries-differ"
	KindForcedApart               Kind = "forced-apart"
	KindAuthRevisionsDiffer       Kind = "auth-revisions-differ"
	KindAuthRevisionAgainstLog    Kind = "auth-revision-against-log"
	KindAuthRevisionBelowStamp    Kind = "auth-revision-below-stamp"
	KindAuthRevisionTooHigh       Kind = "auth-revision-too-high"
	KindEntriesRefusedForAuth     Kind = "entries-refused-for-auth"
	KindPasswordsNotFromLog       Kind = "passwords-not-from-log"
	KindEffectBeyondRights        Kind = "effect-beyond-rights"
	KindPasswordsInLog            Kind = "passwords-in-log"
	KindAuthBucketsContradict     Kind = "auth-buckets-contradict"
	KindIndexCannotMove           Kind = "index-cannot-move"
	KindIndexMissing              Kind = "index-missing"
	KindEffectsAboveIndex         Kind = "effects-above-index"
	KindRowsAboveIndex            Kind = "rows-above-index"
	KindEntriesAppliedTwice       Kind = "entries-applied-twice"
	KindIndexAltered              Kind = "index-altered"
	KindIndexForeign              Kind = "index-foreign"
	KindIndexBitRaised            Kind = "index-bit-raised"
	KindClusterIDAltered          Kind = "cluster-id-altered"
	KindClustersMixed             Kind = "clusters-mixed"
	KindCompactionNotRequested    Kind = "compaction-not-requested"
	KindCompactionNotScheduled    Kind = "compaction-not-scheduled"
	KindConfStateUnknownMember    Kind = "conf-state-unknown-member"
	KindConfStateNeverHeld        Kind = "conf-state-never-held"
	KindConfStateDiffers          Kind = "conf-state-differs"
	KindConfStateKeptDiffers      Kind = "conf-state-kept-differs"
	KindDBTermDiffers             Kind = "db-term-differs"
	KindCommitBeyondLog           Kind = "commit-beyond-log"
	KindMemberZombie              Kind = "member-zombie"
	KindMemberListedAndRemoved    Kind = "member-listed-and-removed"
	KindVoterListedAsLearner      Kind = "voter-listed-as-learner"
	KindLearnerListedAsVoter      Kind = "learner-listed-as-voter"
	KindKeysDiffer                Kind = "keys-differ"
	KindRevisionsDiffer           Kind = "revisions-differ"
	KindRevisionFalls             Kind = "revision-falls"
	KindEntriesWithoutEffect      Kind = "entries-without-effect"
	KindLogAgainstDatabases       Kind = "log-against-databases"
	KindBelowCompactionAgainstLog Kind = "below-compaction-against-log"
	KindRowsAgainstLog            Kind = "rows-against-log"
	KindMetaPageInvalid           Kind = "meta-page-invalid"
	KindMetaHeaderWrong           Kind = "meta-header-wrong"
	KindPageDamaged               Kind = "page-damaged"
	KindDBBeyondLog               Kind = "db-beyond-log"
	KindDBSizesDiffer             Kind = "db-sizes-differ"
	KindCompactionUnfinished      Kind = "compaction-unfinished"
	KindRootHoldsRevisions        Kind = "root-holds-revisions"
	KindPageReused                Kind = "page-reused"
	KindSupersededLeft            Kind = "superseded-left"
	KindClusterForced             Kind = "cluster-forced"
	KindForcedDroppedApplied      Kind = "forced-dropped-applied"
	KindForcedKeptLearner         Kind = "forced-kept-learner"
	KindFreelistStored            Kind = "freelist-stored"
	KindFreelistStoredAlone       Kind = "freelist-stored-alone"
	KindVoteAltered               Kind = "vote-altered"
	KindDataDirCloned             Kind = "data-dir-cloned"
	KindTwinClusters              Kind = "twin-clusters"
	KindClusterRestoredTwice      Kind = "cluster-restored-twice"
	KindMemberRestoredAlone       Kind = "member-restored-alone"
	KindRestoredOrBefore          Kind = "restored-or-before"
	KindTwoProcesses              Kind = "two-processes"
	KindDataDirOfRemoved          Kind = "data-dir-of-removed"
	KindMemberUnknown             Kind = "member-unknown"
	KindMemberNamedWrongly        Kind = "member-named-wrongly"
	KindPromotionReplayed         Kind = "promotion-replayed"
	KindLearnerReplayed           Kind = "learner-replayed"
	KindLearnerNeverStarted       Kind = "learner-never-started"
	KindLearnerNeverCaughtUp      Kind = "learner-never-caught-up"
	KindLearnerBlocks             Kind = "learner-blocks"
	KindLearnerJustAdded          Kind = "learner-just-added"
	KindLearnerLags               Kind = "learner-lags"
	KindLearnerAbsent             Kind = "learner-absent"
	KindRevokesDiffer             Kind = "revokes-differ"
	KindCheckpointsNotStored      Kind = "checkpoints-not-stored"
	KindRemainingNeverSet         Kind = "remaining-ttl-never-set"
	KindCheckpointsStoredBySome   Kind = "checkpoints-stored-by-some"
	KindLeaseIDNegative           Kind = "lease-id-negative"
	KindRevokeWithoutEffect       Kind = "revoke-without-effect"
	KindRevokeRejected            Kind = "revoke-rejected"
	KindLeaseGone                 Kind = "lease-gone"
	KindRevokedByFormerLeader     Kind = "revoked-by-former-leader"
	KindLeasesNeverExpired        Kind = "leases-never-expired"
	KindTTLBelowGrant             Kind = "ttl-below-grant"
	KindTTLAboveGrant             Kind = "ttl-above-grant"
	KindTTLMinimumsMixed          Kind = "ttl-minimums-mixed"
	KindTTLImpossible             Kind = "ttl-impossible"
	KindRemainingDiffers          Kind = "remaining-differs"
	KindTTLMinimumsDiffer         Kind = "ttl-minimums-differ"
	KindDefragLeftover            Kind = "defrag-leftover"
	KindSnapLeftover              Kind = "snap-leftover"
	KindLogDamaged                Kind = "log-damaged"
	KindSnapshotFileDamaged       Kind = "snapshot-file-damaged"
	KindGapOther                  Kind = "gap-other"
	KindGapAlarmQueries           Kind = "gap-alarm-queries"
	KindGapRefused                Kind = "gap-refused"
	KindGapAlarmRaises            Kind = "gap-alarm-raises"
	KindGapOverwritten            Kind = "gap-overwritten"
	KindGapNotInstalled           Kind = "gap-not-installed"
	KindGapForeign                Kind = "gap-foreign"
	KindMemberRowMissing          Kind = "member-row-missing"
	KindRemovalNotNoted           Kind = "removal-not-noted"
	KindRemovalForgotten          Kind = "removal-forgotten"
	KindRemovalNotInLog           Kind = "removal-not-in-log"
	KindMemberRowAgainstLog       Kind = "member-row-against-log"
	KindMemberRowAboveIndex       Kind = "member-row-above-index"
	KindMemberRowAboveLog         Kind = "member-row-above-log"
	KindSourceTwice               Kind = "source-twice"
	KindMemberTwice               Kind = "member-twice"
	KindOlderCopy                 Kind = "older-copy"
	KindOlderHistory              Kind = "older-history"
	KindBackupBeforeRestore       Kind = "backup-before-restore"
	KindBackupUnrelated           Kind = "backup-unrelated"
	KindMemberListsDisagree       Kind = "member-lists-disagree"
	KindAlarmRaised               Kind = "alarm-raised"
	KindPartMissing               Kind = "part-missing"
	KindFileUnreadable            Kind = "file-unreadable"
	KindHistoryImpossible         Kind = "history-impossible"
	KindLeaseOfKeyMissing         Kind = "lease-of-key-missing"
	KindTombstonesDiffer          Kind = "tombstones-differ"
	KindRevisionBelowScheduled    Kind = "revision-below-scheduled"
	KindRevisionBelowFinished     Kind = "revision-below-finished"
	KindRevisionReused            Kind = "revision-reused"
	KindTombstonesLeft            Kind = "tombstones-left"
	KindCopyTorn                  Kind = "copy-torn"
	KindOutcomesDiffer            Kind = "outcomes-differ"
	KindLogRemoved                Kind = "log-removed"
	KindDBRemoved                 Kind = "db-removed"
	KindSnapshotFileNotCopied     Kind = "snapshot-file-not-copied"
	KindSnapshotFileGone          Kind = "snapshot-file-gone"
	KindBackupUsedAsDB            Kind = "backup-used-as-db"
	KindCopyUsedAsDB              Kind = "copy-used-as-db"
	KindBelowQuorum               Kind = "below-quorum"
	KindBelowQuorumLogsLost       Kind = "below-quorum-logs-lost"
	KindBelowQuorumLogsOlder      Kind = "below-quorum-logs-older"
	KindCommittedReplaced         Kind = "committed-replaced"
	KindMemberLags                Kind = "member-lags"
	KindTailUncommitted           Kind = "tail-uncommitted"
	KindMemberCameBack            Kind = "member-came-back"
	KindMemberWiped               Kind = "member-wiped"
	KindTermBegunTwice            Kind = "term-begun-twice"
	KindEntriesDifferInTerm       Kind = "entries-differ-in-term"
	KindVotedTwice                Kind = "voted-twice"
	KindCommitFalls               Kind = "commit-falls"
	KindTermFalls                 Kind = "term-falls"
	KindTermAltered               Kind = "term-altered"
	KindCommitAheadOfLog          Kind = "commit-ahead-of-log"
	KindLeaderLacksEntries        Kind = "leader-lacks-entries"
	KindRequestRepeated           Kind = "request-repeated"
	KindStampAltered              Kind = "stamp-altered"
	KindEntryEmptied              Kind = "entry-emptied"
	KindStatesGone                Kind = "states-gone"
	KindJointConfiguration        Kind = "joint-configuration"
	KindReceivedUnused            Kind = "received-unused"
	KindRecordsDiffer             Kind = "records-differ"
	KindLogEndsBeforeServed       Kind = "log-ends-before-served"
	KindVoteMissing               Kind = "vote-missing"
	KindServerLogOfOther          Kind = "server-log-of-other"
	KindServerLogWentBack         Kind = "server-log-went-back"
	KindServerLogGoesFurther      Kind = "server-log-goes-further"
	KindServerLogErrors           Kind = "server-log-errors"
	KindRecordConfAltered         Kind = "record-conf-altered"
	KindSnapConfAltered           Kind = "snap-conf-altered"
	KindRecordIndexAltered        Kind = "record-index-altered"
	KindSnapshotsOfOther          Kind = "snapshots-of-other"
	KindRecordsGone               Kind = "snapshot-records-gone"
	KindVoterNeverStarted         Kind = "voter-never-started"
	KindRowsDiffer                Kind = "rows-differ"
	KindLastPageEmpty             Kind = "last-page-empty"
	KindV2StoresDiffer            Kind = "v2-stores-differ"
	KindV2MembersAgainstBucket    Kind = "v2-members-against-bucket"
	KindV2MembersAgainstLog       Kind = "v2-members-against-log"
	KindV2KeysAgainstLog          Kind = "v2-keys-against-log"
	KindV2MembersAgainstEvents    Kind = "v2-members-against-events"
	KindStorageVersionTooHigh     Kind = "storage-version-too-high"
	KindDowngradeUnfinished       Kind = "downgrade-unfinished"
	KindStorageVersionsDiffer     Kind = "storage-versions-differ"
	KindClusterVersionUnknown     Kind = "cluster-version-unknown"
	KindStorageVersionUnknown     Kind = "storage-version-unknown"
	KindClusterVersionImpossible  Kind = "cluster-version-impossible"
	KindStorageVersionImpossible  Kind = "storage-version-impossible"
	KindClusterVersionAgainstLog  Kind = "cluster-version-against-log"
	KindClusterVersionTooLow      Kind = "cluster-version-too-low"
	KindClusterVersionAboveIndex  Kind = "cluster-version-above-index"
	KindV2KeysHeld                Kind = "v2-keys-held"
	KindV2RequestsInLog           Kind = "v2-requests-in-log"
	KindRecordTooLarge            Kind = "record-too-large"
	KindLogPurged                 Kind = "log-purged"
	KindFirstSegmentMisnamed      Kind = "first-segment-misnamed"
	KindLogPurgedAndSound         Kind = "log-purged-and-sound"
	KindTrailerMismatch           Kind = "trailer-mismatch"
	KindTrailerAbsent             Kind = "trailer-absent"
	KindBackupCut                 Kind = "backup-cut"
	KindTrailerCut                Kind = "trailer-cut"
	KindBackupAppended            Kind = "backup-appended"
	KindBackupForeign             Kind = "backup-foreign"
	KindBackupUnreadable          Kind = "backup-unreadable"
	KindBackupPacking             Kind = "backup-packing"
	KindBucketUnreachable         Kind = "bucket-unreachable"
	KindBucketMissing             Kind = "bucket-missing"
	KindMemberListOdd             Kind = "member-list-odd"
	KindBackupAuthBroken          Kind = "backup-auth-broken"
	KindBackupVersionWrong        Kind = "backup-version-wrong"
	KindBackupMarksWrong          Kind = "backup-marks-wrong"
	KindBackupLacks               Kind = "backup-lacks"
	KindBackupStateDiffers        Kind = "backup-state-differs"
	KindBackupTermDiffers         Kind = "backup-term-differs"
	KindDatabaseTermsDiffer       Kind = "database-terms-differ"
	KindBackupAgainstLog          Kind = "backup-against-log"
	KindRestoreFails              Kind = "restore-fails"
	KindDeltaBroken               Kind = "delta-broken"
	KindBackupTooOld              Kind = "backup-too-old"
	KindBackupNotContinued        Kind = "backup-not-continued"
	KindSecondOpinionDiffers      Kind = "second-opinion-differs"
	KindSourceChanged             Kind = "source-changed"
)

// kindRow says which checks state a kind and what it says.
type kindRow struct {
	kind   Kind
	checks []ID
	states string
}

// kinds lists all kinds.
var kinds = []kindRow{
	{KindAlarmOfNoMember, []ID{K08}, "an alarm is raised for an ID that is not a member"},
	{KindCorruptAlarmUnfounded, []ID{K09}, "CORRUPT is raised and all keys are equal"},
	{KindCorruptAlarmNamesOther, []ID{K09}, "CORRUPT names other members than the comparison"},
	{KindAlarmAgainstLog, []ID{M17}, "an alarm is not as the log left it"},
	{KindEntriesAltered, []ID{R01}, "an entry was altered in a log"},
	{KindEntriesRenumbered, []ID{R01}, "entries are missing in a log and the later ones are renumbered"},
	{KindCommittedEntriesDiffer, []ID{R01}, "logs hold different entries at a committed index"},
	{KindForcedApart, []ID{R01}, "logs hold different entries from the index on at which a new cluster was forced"},
	{KindAuthRevisionsDiffer, []ID{A01}, "the auth revision differs between members"},
	{KindAuthRevisionAgainstLog, []ID{A02}, "the auth revision does not result from the log"},
	{KindAuthRevisionBelowStamp, []ID{A02}, "the auth revision is lower than one that the member stamped on its own " +
		"request"},
	{KindAuthRevisionTooHigh, []ID{A02}, "the auth revision is higher than the log allows"},
	{KindEntriesRefusedForAuth, []ID{A04}, "a member dropped entries for its auth revision"},
	{KindPasswordsNotFromLog, []ID{A10}, "a password hash is in no entry of the log"},
	{KindEffectBeyondRights, []ID{A07}, "a transaction took effect beyond the rights of its user"},
	{KindPasswordsInLog, []ID{A06}, "the log holds passwords in clear"},
	{KindAuthBucketsContradict, []ID{A05}, "the auth buckets contradict each other"},
	{KindIndexCannotMove, []ID{C01}, "a term from elsewhere blocks the consistent index"},
	{KindIndexMissing, []ID{C02}, "the database has records and no consistent index"},
	{KindEffectsAboveIndex, []ID{C03}, "the database holds the effects of entries above its index"},
	{KindRowsAboveIndex, []ID{C03}, "the database holds rows from entries above its index"},
	{KindEntriesAppliedTwice, []ID{C04}, "a member applied entries a second time"},
	{KindIndexAltered, []ID{C05}, "the consistent index is impossible"},
	{KindIndexForeign, []ID{C05}, "the database is of another cluster, with an index beyond the log"},
	{KindIndexBitRaised, []ID{C05}, "the consistent index is impossible, and one bit of it makes the difference"},
	{KindClusterIDAltered, []ID{M01}, "the cluster ID in the WAL metadata was altered"},
	{KindClustersMixed, []ID{M01}, "the sources belong to different clusters"},
	{KindCompactionNotRequested, []ID{K13}, "a compaction is scheduled that cannot have been requested"},
	{KindCompactionNotScheduled, []ID{K13}, "a compaction is finished that was never scheduled"},
	{KindConfStateUnknownMember, []ID{M18}, "meta/confState names an ID that never was a member"},
	{KindConfStateNeverHeld, []ID{M18}, "meta/confState is a configuration that the cluster never had"},
	{KindConfStateDiffers, []ID{M18}, "meta/confState is not raft's configuration"},
	{KindConfStateKeptDiffers, []ID{M18}, "members restored from one backup have different rows meta/confState"},
	{KindDBTermDiffers, []ID{D05}, "the database stores another term at its index than the log"},
	{KindDatabaseTermsDiffer, []ID{D05}, "databases with the same keys and index store different terms"},
	{KindBackupTermDiffers, []ID{D05}, "a backup stores another term at its index than the logs of the members"},
	{KindCommitBeyondLog, []ID{R03}, "the commit index is beyond the end of the log"},
	{KindMemberZombie, []ID{M07}, "zombie members: bucket members lists them, raft does not know them"},
	{KindMemberListedAndRemoved, []ID{M07}, "a member is listed and removed at once"},
	{KindVoterListedAsLearner, []ID{M07}, "bucket members calls a voter of raft a learner"},
	{KindLearnerListedAsVoter, []ID{M07}, "bucket members calls a learner of raft a voter"},
	{KindKeysDiffer, []ID{K01}, "keys differ between members"},
	{KindRevisionsDiffer, []ID{K02}, "the revision differs between members at one index"},
	{KindRevisionFalls, []ID{K02}, "the revision is lower where more entries were applied"},
	{KindEntriesWithoutEffect, []ID{K03}, "the database disagrees with the log"},
	{KindLogAgainstDatabases, []ID{K03}, "an entry that one log holds contradicts several databases"},
	{KindBelowCompactionAgainstLog, []ID{K03}, "the database disagrees with the log at or below its compact revision"},
	{KindRowsAgainstLog, []ID{K03}, "rows of small buckets contradict the log"},
	{KindMetaPageInvalid, []ID{D01}, "a meta page is invalid"},
	{KindMetaHeaderWrong, []ID{D01}, "the page header of a valid meta page is wrong"},
	{KindPageDamaged, []ID{D02, D03}, "a page or row of the database is damaged"},
	{KindDBBeyondLog, []ID{D04}, "the database has applied more than the log holds"},
	{KindDBSizesDiffer, []ID{K05}, "database files differ in size"},
	{KindCompactionUnfinished, []ID{K05}, "a compaction is not finished"},
	{KindRootHoldsRevisions, []ID{D06}, "the root page holds revisions instead of buckets"},
	{KindPageReused, []ID{D06}, "a page of a bucket was used for other rows"},
	{KindSupersededLeft, []ID{D07}, "superseded records are below the finished compaction"},
	{KindClusterForced, []ID{M11}, "a new cluster was forced from one member"},
	{KindForcedDroppedApplied, []ID{M11}, "a forced start cut off entries that were applied"},
	{KindForcedKeptLearner, []ID{M11}, "a learner survived the forced start"},
	{KindFreelistStored, []ID{D08}, "the database stores a freelist"},
	{KindFreelistStoredAlone, []ID{D08}, "the database stores a freelist, unlike those of other members"},
	{KindVoteAltered, []ID{R08}, "a vote was altered in the log"},
	{KindDataDirCloned, []ID{M12}, "one member has two histories"},
	{KindTwinClusters, []ID{M12}, "two clusters share all IDs and no entry"},
	{KindClusterRestoredTwice, []ID{M12}, "separate clusters: a backup was restored into several with the same IDs"},
	{KindMemberRestoredAlone, []ID{M12}, "a member was restored while its cluster kept running"},
	{KindRestoredOrBefore, []ID{M12}, "a member was restored alone, or the others are from before the restore of all"},
	{KindTwoProcesses, []ID{M12}, "two processes of one member proposed at the same time"},
	{KindDataDirOfRemoved, []ID{M08}, "a source is the data dir of a removed member"},
	{KindMemberUnknown, []ID{M09}, "a member is in no configuration and no list"},
	{KindMemberNamedWrongly, []ID{M09}, "a source was given under the name of another member"},
	{KindPromotionReplayed, []ID{M14}, "a start replays a promotion that bucket members shows"},
	{KindLearnerReplayed, []ID{M14}, "a start replays the addition of a learner"},
	{KindLearnerNeverStarted, []ID{M10}, "a learner never started"},
	{KindLearnerNeverCaughtUp, []ID{M10}, "a learner holds nothing of the cluster's log"},
	{KindLearnerBlocks, []ID{M10}, "a learner that lags blocks the addition of another"},
	{KindLearnerJustAdded, []ID{M10}, "a learner was added as the last thing before the copy"},
	{KindLearnerLags, []ID{M10}, "a learner lags"},
	{KindLearnerAbsent, []ID{M10}, "a learner whose data dir is not here, and another was refused"},
	{KindRevokesDiffer, []ID{L03}, "lease revokes deleted keys on some members only"},
	{KindCheckpointsNotStored, []ID{L06}, "the log holds checkpoints of TTLs that no member stores"},
	{KindRemainingNeverSet, []ID{L06}, "a lease has a remaining TTL that no checkpoint sets"},
	{KindCheckpointsStoredBySome, []ID{L06}, "only some members store remaining TTLs"},
	{KindLeaseIDNegative, []ID{L05}, "a lease has a negative ID"},
	{KindRevokeWithoutEffect, []ID{L09}, "a lease outlived its revoke"},
	{KindRevokeRejected, []ID{L09}, "a revoke was rejected, as the member's release does"},
	{KindLeaseGone, []ID{L09}, "a lease is gone that nothing revoked"},
	{KindRevokedByFormerLeader, []ID{L07}, "a former leader revoked leases"},
	{KindLeasesNeverExpired, []ID{L08}, "a leader with a received database expired no lease"},
	{KindTTLBelowGrant, []ID{L04}, "a lease has a lower TTL than its grant asks for"},
	{KindTTLAboveGrant, []ID{L04}, "a lease has a higher TTL than its grant asks for"},
	{KindTTLMinimumsMixed, []ID{L04}, "a member raised TTLs to more than one minimum"},
	{KindTTLImpossible, []ID{L04}, "a lease has a TTL that no server stores"},
	{KindRemainingDiffers, []ID{L04}, "members store different remaining TTLs of a lease"},
	{KindTTLMinimumsDiffer, []ID{L04}, "members raise short TTLs to different minimums"},
	{KindDefragLeftover, []ID{S04}, "a defragmentation was interrupted"},
	{KindSnapLeftover, []ID{S04}, "the snap folder holds files that nothing needs"},
	{KindLogDamaged, []ID{W01, W02, W03}, "a place of the log is damaged"},
	{KindSnapshotFileDamaged, []ID{S01}, "a snapshot file is damaged"},
	{KindGapOther, []ID{S02}, "the database is older than the raft snapshot, by entries with effects or that no log " +
		"holds"},
	{KindGapAlarmQueries, []ID{S02}, "the database is older than the raft snapshot, by alarm queries alone"},
	{KindGapRefused, []ID{S02}, "the database is older than the raft snapshot, by refused entries alone"},
	{KindGapAlarmRaises, []ID{S02}, "the database is older than the raft snapshot, by repeated alarms alone"},
	{KindGapOverwritten, []ID{S02}, "the consistent index is below the raft snapshot, the effects are there"},
	{KindGapNotInstalled, []ID{S02}, "the database of a received snapshot was never installed"},
	{KindGapForeign, []ID{S02}, "the database is of another cluster"},
	{KindMemberRowMissing, []ID{M16}, "bucket members does not list a member"},
	{KindRemovalNotNoted, []ID{M16}, "members_removed does not list a removed member"},
	{KindRemovalForgotten, []ID{M16}, "a member lists a removed member that one ahead of it does not list"},
	{KindRemovalNotInLog, []ID{M16}, "members_removed lists a member that nothing removed"},
	{KindMemberRowAboveLog, []ID{M07}, "a row of bucket members is of an entry that the log lost"},
	{KindMemberRowAboveIndex, []ID{M16}, "a row of bucket members is of an entry above the consistent index"},
	{KindMemberRowAgainstLog, []ID{M16}, "a row of bucket members contradicts the log"},
	{KindSourceTwice, []ID{X01}, "one source was given more than once"},
	{KindMemberTwice, []ID{X01}, "several sources carry one member ID"},
	{KindOlderCopy, []ID{X01}, "a source is an older copy of another one"},
	{KindOlderHistory, []ID{X01}, "a source has the member ID of a newer one that does not continue it"},
	{KindBackupBeforeRestore, []ID{M01}, "a backup is from before the cluster was restored"},
	{KindBackupUnrelated, []ID{M01}, "nothing shows whether a backup is of this cluster"},
	{KindMemberListsDisagree, []ID{M03}, "raft's configuration and bucket members disagree"},
	{KindAlarmRaised, []ID{M06}, "an alarm is raised"},
	{KindPartMissing, []ID{X02}, "a data dir lacks a part"},
	{KindFileUnreadable, []ID{X02}, "a file of a source cannot be read"},
	{KindHistoryImpossible, []ID{K04}, "records are not a possible history"},
	{KindLeaseOfKeyMissing, []ID{L02}, "a key names a lease that does not exist"},
	{KindTombstonesDiffer, []ID{K07}, "members kept different tombstones at the compact revision"},
	{KindRevisionBelowScheduled, []ID{K10}, "the newest record is below the unfinished compaction"},
	{KindRevisionBelowFinished, []ID{K10}, "the newest record is below the finished compaction"},
	{KindRevisionReused, []ID{K10}, "a revision was given to a second write"},
	{KindTombstonesLeft, []ID{K11}, "tombstones are below the finished compaction"},
	{KindCopyTorn, []ID{X05}, "log and database were copied while the server wrote"},
	{KindOutcomesDiffer, []ID{K06}, "an entry had different results on different members"},
	{KindLogRemoved, []ID{X03}, "the log was started again, the rest is older"},
	{KindDBRemoved, []ID{X03}, "the database is missing or new, the log goes further"},
	{KindSnapshotFileNotCopied, []ID{X03}, "the file of the newest raft snapshot is gone, or was not copied"},
	{KindSnapshotFileGone, []ID{X03}, "the file of the newest raft snapshot is gone"},
	{KindBackupUsedAsDB, []ID{X03}, "the database is a backup file"},
	{KindCopyUsedAsDB, []ID{X03}, "the database is a copy that does not fit the log"},
	{KindBelowQuorum, []ID{R07}, "a committed entry is in too few logs, which may have been copied earlier"},
	{KindBelowQuorumLogsLost, []ID{R07}, "a committed entry is in too few logs, and a log lost entries"},
	{KindBelowQuorumLogsOlder, []ID{R07}, "a committed entry is in too few logs, and a log is older than its member"},
	{KindCommittedReplaced, []ID{R04}, "a committed entry was replaced"},
	{KindMemberLags, []ID{R02}, "a member lags"},
	{KindTailUncommitted, []ID{R02}, "a log holds entries that no source proves committed"},
	{KindMemberCameBack, []ID{M04}, "a member had lost its data and came back under its old ID"},
	{KindMemberWiped, []ID{M04}, "a member lost its data"},
	{KindTermBegunTwice, []ID{R05}, "a term had two leaders"},
	{KindEntriesDifferInTerm, []ID{R05}, "logs hold different entries at one index and term"},
	{KindVotedTwice, []ID{R06}, "a member voted twice in one term"},
	{KindCommitFalls, []ID{R08}, "the commit index falls"},
	{KindTermFalls, []ID{R08}, "the term falls"},
	{KindTermAltered, []ID{R08}, "the term of one entry was altered"},
	{KindCommitAheadOfLog, []ID{R08}, "entries were removed from a log"},
	{KindLeaderLacksEntries, []ID{R08}, "the log of a leader lacks entries of the term that it led"},
	{KindRequestRepeated, []ID{R08}, "a log holds a request twice"},
	{KindStampAltered, []ID{R08}, "the auth revision stamped on one entry was altered"},
	{KindEntryEmptied, []ID{R08}, "the data of an entry was removed"},
	{KindStatesGone, []ID{R08}, "the log lacks every HardState"},
	{KindJointConfiguration, []ID{R09}, "a joint configuration is stored"},
	{KindReceivedUnused, []ID{S05}, "a received database was never committed to"},
	{KindRecordsDiffer, []ID{K12}, "records of bucket key differ between members"},
	{KindLogEndsBeforeServed, []ID{R10}, "a log ends before what its member served"},
	{KindVoteMissing, []ID{R10}, "a log lacks a vote that its member must have stored"},
	{KindServerLogOfOther, []ID{G01}, "the server's log was written by another member"},
	{KindServerLogWentBack, []ID{G01}, "the data dir went back in time, by the server's log"},
	{KindServerLogGoesFurther, []ID{G01}, "the server's log names entries that the files lack"},
	{KindServerLogErrors, []ID{G01}, "the server wrote known error lines"},
	{KindRecordConfAltered, []ID{W06}, "the configuration of a snapshot record does not fit"},
	{KindRecordIndexAltered, []ID{W06}, "the index of a snapshot record does not fit"},
	{KindSnapshotsOfOther, []ID{W06}, "log and snapshot files are of two members"},
	{KindRecordsGone, []ID{W06}, "a log lacks every snapshot record"},
	{KindVoterNeverStarted, []ID{M05}, "a voter never started"},
	{KindRowsDiffer, []ID{A03, A08, A09, L01, L04, M02, M17}, "rows of a small bucket differ between members"},
	{KindLastPageEmpty, []ID{D09}, "the last page of a bucket is empty"},
	{KindSnapConfAltered, []ID{M15}, "a .snap file has another configuration than member list"},
	{KindV2StoresDiffer, []ID{M15}, "the v2 store differs between members"},
	{KindV2MembersAgainstBucket, []ID{M15}, "the member lists of v2 store and database differ"},
	{KindV2MembersAgainstLog, []ID{M15}, "the member list of the v2 store contradicts the log"},
	{KindV2KeysAgainstLog, []ID{M15}, "the keys of the v2 store contradict the log"},
	{KindV2MembersAgainstEvents, []ID{M15}, "the member list of the v2 store contradicts the events that wrote it"},
	{KindStorageVersionTooHigh, []ID{X04}, "the storage version is above the cluster version"},
	{KindDowngradeUnfinished, []ID{X04}, "a downgrade is enabled and not finished"},
	{KindStorageVersionsDiffer, []ID{X04}, "storage versions differ between members"},
	{KindClusterVersionUnknown, []ID{X04}, "the cluster version is newer than this program knows"},
	{KindStorageVersionUnknown, []ID{X04}, "the storage version is newer than this program knows"},
	{KindClusterVersionImpossible, []ID{X04}, "the cluster version is one that no server accepts"},
	{KindStorageVersionImpossible, []ID{X04}, "the storage version is one that no server accepts"},
	{KindClusterVersionAgainstLog, []ID{X04}, "the cluster version differs from the version that the log set"},
	{KindClusterVersionTooLow, []ID{X04}, "the cluster version is far below the storage version"},
	{KindClusterVersionAboveIndex, []ID{X04}, "the cluster version is that of an entry above the consistent index"},
	{KindV2KeysHeld, []ID{M13}, "the v2 store holds keys of users"},
	{KindV2RequestsInLog, []ID{M13}, "the log holds requests of the v2 API"},
	{KindRecordTooLarge, []ID{W04}, "a record is too large for older servers to read"},
	{KindLogPurged, []ID{W05}, "the log begins after the snapshot that it needs"},
	{KindFirstSegmentMisnamed, []ID{W05}, "the first segment has a name that does not fit"},
	{KindLogPurgedAndSound, []ID{W05}, "the log begins with a later segment and is sound"},
	{KindTrailerMismatch, []ID{B01}, "the sha256 trailer does not fit the content"},
	{KindTrailerAbsent, []ID{B01}, "a backup has no sha256 trailer"},
	{KindBackupCut, []ID{B02}, "content of a backup is missing"},
	{KindTrailerCut, []ID{B02}, "the sha256 trailer of a backup is cut"},
	{KindBackupAppended, []ID{B02}, "bytes follow the end of a backup"},
	{KindBackupForeign, []ID{B02}, "a file holds no etcd database"},
	{KindBackupUnreadable, []ID{B02}, "a file that is meant to be a backup cannot be read"},
	{KindBackupPacking, []ID{B02}, "the packing of a backup is damaged"},
	{KindBucketUnreachable, []ID{B03}, "no bucket can be reached"},
	{KindBucketMissing, []ID{B03}, "a bucket is missing"},
	{KindMemberListOdd, []ID{B04}, "the member list of a backup contradicts itself"},
	{KindBackupAuthBroken, []ID{B05}, "users, roles and rights of a backup do not fit together"},
	{KindBackupVersionWrong, []ID{B06}, "a version stored in a backup is none"},
	{KindBackupMarksWrong, []ID{B07}, "marks of compaction and index of a backup do not fit together"},
	{KindBackupLacks, []ID{B08}, "the backup holds another history than the source it is compared with"},
	{KindBackupStateDiffers, []ID{B08}, "the backup holds another state than the source it is compared with"},
	{KindBackupAgainstLog, []ID{B08}, "the backup contradicts the log of the source it is compared with"},
	{KindRestoreFails, []ID{B09}, "a restore of the backup does not work"},
	{KindDeltaBroken, []ID{B10}, "a delta snapshot is missing, damaged or does not apply"},
	{KindBackupTooOld, []ID{B11}, "a backup is older than asked for"},
	{KindBackupNotContinued, []ID{B12}, "a backup does not continue the earlier one of its series"},
	{KindSecondOpinionDiffers, []ID{X10}, "the replay and a real server disagree"},
	{KindSourceChanged, []ID{X00}, "a source changed while it was read"},
}

// Text is what findings of the kind state, in a few words.
func (k Kind) Text() string {
	for i := range kinds {
		if kinds[i].kind == k {
			return kinds[i].states
		}
	}
	return ""
}

// Check is the check that reports the kind, the first if several do.
func (k Kind) Check() ID {
	for i := range kinds {
		if kinds[i].kind == k {
			return kinds[i].checks[0]
		}
	}
	return ""
}

// KindsOf lists the kinds that a check reports.
func KindsOf(id ID) (out []Kind) {
	for i := range kinds {
		if slices.Contains(kinds[i].checks, id) {
			out = append(out, kinds[i].kind)
		}
	}
	return out
}
