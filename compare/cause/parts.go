package cause

import "github.com/etcd-medic/etcd-medic/compare/check"

var walRemoved = Cause{
	ID: "wal-removed-db-kept", Title: "the log was removed and the database kept",
	Doc: `The WAL was deleted, to free space or to get a server to start, and the server was started on what was left. It began a new log under its old
identity: its votes and what it had acknowledged are forgotten, and new entries at indexes that the database has applied are skipped.
Proven by a log that holds the first entries of a member's life only, beside a database or snapshot files from behind its end.`,
	LookAlikes: "a WAL dir of its own (--wal-dir) that was not given with the data dir",
	Recovery:   "treat the member as one that lost its data: remove it, set the dir aside, add it again with an empty one",
	Loss:       "votes, acknowledgements, and entries that were not applied yet",
	Match: func(in *Input) *Match {
		return byField(in, "the segments that lead up to the database's index", "X03", check.FieldWALRemoved)
	},
}

var dbRemoved = Cause{
	ID: "db-or-snap-dir-removed", Title: "the database was removed and the log kept",
	Doc: `The database, or the whole snap folder, was deleted while the log was kept. What lies below the log's snapshots was in the database only. Up to
3.6 a server starts and applies the whole log again if no .snap file is left and the log reaches back to its first entry; otherwise it does
not start, and 3.7 never does.
Proven by snapshot records in the log beside an empty database, or none where snapshot files still are.`,
	LookAlikes: "a new member that never received anything: its log has no snapshot; a source of which the database " +
		"was not copied",
	Recovery: "keep the log until the member is reseeded; then remove it and add it again with an empty dir",
	Loss:     "none where other members are sound",
	Match: func(in *Input) *Match {
		return byField(in, "the database in another place", "X03", check.FieldDBRemoved)
	},
}

var snapRemoved = Cause{
	ID: "snap-files-removed", Title: "the .snap files were removed",
	Doc: `The log has a record of its newest snapshot, but the file is gone. Up to 3.6 the server reads it at boot. It can still start when an older file
that the log knows is there, or when the log reaches back to its first entry, and the database has applied the newest snapshot.`,
	LookAlikes: "older files, of which five are kept; 3.8, which writes none; a damaged file, which the server " +
		"renames to .broken",
	Recovery: "start the member if the log or an older file serves, else reseed it",
	Loss:     "none in the former case",
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "the file in another copy of the data dir", "X03", check.FieldSnapRemoved))
	},
}

var backupAsDB = Cause{
	ID: "saved-snapshot-used-as-db", Title: "a backup file was put in the place of the database",
	Doc: `A file of snapshot save was copied to member/snap/db instead of being restored. Its index and member list are of another time than the log: entries
between them are applied again or skipped, and removed members come back.
Proven by the sha256 trailer behind the last page, which only snapshot save writes and which fits; strong when the trailer no longer fits
because the server has written to the file since, or when it is gone and the meta pages are those of a copy that nobody has written to.`,
	LookAlikes: "a database received from a leader: it has no trailer; a restored one: restore removes the trailer",
	Recovery:   "restore the backup into a new data dir instead; a member of a running cluster is removed and added again",
	Loss:       "depends on the age of the backup",
	Match: func(in *Input) *Match {
		m := byField(in, "a file that ends with the last page", "X03", check.FieldBackupAsDB)
		if m == nil {
			if m = byField(in, "a snapshot record of the log at its index", "X03", check.FieldCopyAsDB); m != nil {
				m.Certainty = Strong
			}
			return m
		}
		for _, x := range in.Members {
			if x.DB != nil && x.DB.Trailer.State == "mismatch" {
				m.Certainty = Strong
			}
		}
		return m
	},
}

var tornLiveCopy = Cause{
	ID: "torn-live-copy", Title: "the data dir was copied while the server wrote to it",
	Doc: `rsync, cp or tar of a running member takes log and database at different moments, and pages of the database at different transactions. Strong
with two signs at least: pages that contradict each other, a page that only a later transaction can have written, a database ahead of its log,
a log that ends inside of a record, a prepared segment that a server which stops in order removes.`,
	Refs:       refs("etcd-io/etcd", 13109),
	LookAlikes: "a crash with power loss; servers with --unsafe-no-fsync that crashed; damage on the disk",
	Recovery: "copy again from the stopped server, or use snapshot save; if the second copy shows the same, treat " +
		"the log as one that lost its end (wal-tail-lost)",
	Loss: "none on the source",
	Match: func(in *Input) *Match {
		if len(in.Findings["X05"]) == 0 {
			return nil
		}
		return &Match{Certainty: Strong, Members: membersOf(in, "X05"), Because: ids(in, "X05"),
			RefutedBy: "a second copy, taken from the stopped server, with the same signs"}
	},
}

var versionMismatch = Cause{
	ID: "downgrade-or-storage-version-mismatch", Title: "the stored versions do not fit each other or the server",
	Doc: `The schema version of a database is above its cluster version or unlike the other members', or a downgrade was enabled and never finished: mixed
versions, a binary that was rolled back by hand, or a database from another time. A server of another line than allowed refuses to start.`,
	Affected:   []string{"all from 3.6 on; misread confState on 3.6.0 - 3.6.4 and 3.7.0 - 3.7.1"},
	FixedIn:    []string{"3.6.5 and 3.7.2 (messages and minimal version)"},
	Refs:       refs("etcd-io/etcd", 20495, 15878),
	LookAlikes: "the first seconds after a start, before the version is written; a data dir that was never started on 3.6",
	Recovery:   "finish or cancel the downgrade; on a copy, etcdutl migrate changes the storage version",
	Loss:       "none",
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "the same version in all stores at a later moment", "X04",
			check.FieldStorageVersion, check.FieldDowngrade))
	},
}

var v2Content = Cause{
	ID: "v2-content-blocks-36", Title: "the v2 store holds keys, and 3.6 refuses to start",
	Doc: `The v2 API was once enabled and left keys in the v2 store. 3.6 and later look for them at start and refuse. Proven by keys in the newest
snapshot's store, or by v2 requests other than etcd's own in the log.`,
	Affected:   []string{"clusters that ever enabled the v2 API"},
	FixedIn:    []string{"false alarms for empty directories: 3.5.22, 3.6.3"},
	Refs:       refs("etcd-io/etcd", 20357),
	LookAlikes: "the empty directories of v2 auth, which made the check of 3.5.18 - 3.5.21 and 3.6.0 - 3.6.2 alarm",
	Recovery:   "on 3.5: migrate or delete the v2 keys, wait for the next snapshot, then upgrade",
	Loss:       "the v2 keys, if they are not migrated",
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "a newer snapshot without these keys", "M13", "v2 key", "v2 request"))
	},
}
