package release

// Rules of the files of a data dir and of starting on them.
var (
	// SnapNeedsRecord: earlier releases used the newest .snap file even if the log had no record of it.
	SnapNeedsRecord = &Rule{
		ID:     "snap-needs-record",
		What:   "a start uses only .snap files that the log has a record of",
		In:     since(Release{3, 21}, Release{4, 8}),
		Source: "server/etcdserver/api/snap/snapshotter.go, LoadNewestAvailable",
	}
	// SnapFileUnused: the snapshot record of the log is enough.
	SnapFileUnused = &Rule{
		ID:     "snap-file-unused",
		What:   "a start needs no .snap file",
		In:     since(Release{7, 0}),
		Source: "server/etcdserver/bootstrap.go @ v3.7.0",
	}
	// LogGapRefused: before, a server could take entries after a gap for the missing ones.
	LogGapRefused = &Rule{
		ID:     "log-gap-refused",
		What:   "a start refuses a log in which entries after the snapshot in use are missing",
		In:     since(Release{3, 23}, Release{4, 10}),
		Source: "server/wal/wal.go, ErrSliceOutOfRange",
	}
	// LogTrimmedOften: earlier releases did so only at a raft snapshot, every --snapshot-count entries.
	LogTrimmedOften = &Rule{
		ID:     "log-trimmed-often",
		What:   "a running server drops old entries from memory every 100 entries",
		In:     since(Release{6, 0}),
		Source: "server/etcdserver/server.go @ v3.6.0, compactRaftLog",
	}
	// RecordLimit concerns records of 10 MiB and more.
	RecordLimit = &Rule{
		ID:     "record-limit",
		What:   "a start refuses log records of 10 MiB and more",
		In:     Spans{{From: Release{3, 23}, Until: Release{4, 0}}, {From: Release{4, 10}, Until: Release{5, 5}}},
		Source: "server/wal/decoder.go, ErrMaxWALEntrySizeLimitExceeded",
	}
	// SyncBeforeApply: before, the database of a single member could be ahead of its log.
	SyncBeforeApply = &Rule{
		ID:     "sync-before-apply",
		What:   "a single member syncs an entry to the log before it executes it",
		In:     since(Release{4, 21}, Release{5, 5}),
		Source: "server/etcdserver/raft.go, shouldWaitWALSync",
	}
	// ForceKeepsApplied: before, --force-new-cluster cut the log at the stored commit, below what the database had
	// applied.
	ForceKeepsApplied = &Rule{
		ID:     "force-keeps-applied",
		What:   "--force-new-cluster keeps what the database has applied",
		In:     since(Release{5, 22}, Release{6, 1}),
		Source: "server/etcdserver/raft.go, restartAsStandaloneNode; server/etcdserver/bootstrap.go",
	}
	// ConfStateInRecord is field 3 of the snapshot records of the log.
	ConfStateInRecord = &Rule{
		ID:     "conf-state-in-record",
		What:   "snapshot records of the log hold raft's configuration",
		In:     since(Release{5, 0}),
		Source: "server/wal/walpb/record.proto",
	}
	// FreelistNotStored applies to Linux, where etcd leaves the list out.
	FreelistNotStored = &Rule{
		ID:     "freelist-not-stored",
		What:   "the freelist is not stored in the database",
		In:     since(Release{3, 0}),
		Source: "server/mvcc/backend/config_linux.go, NoFreelistSync",
	}
	// DefragOwnFile: before, a left-over db.tmp was reused.
	DefragOwnFile = &Rule{
		ID:     "defrag-own-file",
		What:   "each defragmentation writes to a new file",
		In:     since(Release{3, 19}, Release{4, 4}),
		Source: "server/mvcc/backend/backend.go, defrag",
	}
	// NoFsyncOption is --unsafe-no-fsync.
	NoFsyncOption = &Rule{
		ID:     "no-fsync-option",
		What:   "a server has an option not to sync its log",
		In:     since(Release{4, 10}),
		Source: "server/wal/wal.go, unsafeNoSync",
	}
)

var fileRules = []*Rule{SnapNeedsRecord, SnapFileUnused, LogGapRefused, LogTrimmedOften, RecordLimit, SyncBeforeApply,
	ForceKeepsApplied, ConfStateInRecord, FreelistNotStored, DefragOwnFile, NoFsyncOption}
