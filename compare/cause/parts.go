package cause

import "github.com/etcd-medic/etcd-medic/compare/check"

var walRemoved = described(Cause{
	ID: "wal-removed-db-kept",
	Match: func(in *Input) *Match {
		return byField(in, "the segments that lead up to the database's index", "X03", check.FieldWALRemoved)
	},
})

var dbRemoved = described(Cause{
	ID: "db-or-snap-dir-removed",
	Match: func(in *Input) *Match {
		return byField(in, "the database in another place", "X03", check.FieldDBRemoved)
	},
})

var snapRemoved = described(Cause{
	ID: "snap-files-removed",
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "the file in another copy of the data dir", "X03", check.FieldSnapRemoved))
	},
})

var backupAsDB = described(Cause{
	ID: "saved-snapshot-used-as-db",
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
})

var tornLiveCopy = described(Cause{
	ID: "torn-live-copy",
	Match: func(in *Input) *Match {
		if len(in.Findings["X05"]) == 0 {
			return nil
		}
		return &Match{Certainty: Strong, Members: membersOf(in, "X05"), Because: ids(in, "X05"),
			RefutedBy: "a second copy, taken from the stopped server, with the same signs"}
	},
})

var versionMismatch = described(Cause{
	ID: "downgrade-or-storage-version-mismatch",
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "the same version in all stores at a later moment", "X04",
			check.FieldStorageVersion, check.FieldDowngrade))
	},
})

var v2Content = described(Cause{
	ID: "v2-content-blocks-36",
	Match: func(in *Input) *Match {
		return weigh(in, byField(in, "a newer snapshot without these keys", "M13", "v2 key", "v2 request"))
	},
})
