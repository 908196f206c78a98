package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var walRemoved = described(Cause{
	ID: WALRemovedDBKept,
	Match: func(in *Input) *Match {
		return byKind(in, "the segments that lead up to the database's index", check.KindLogRemoved)
	},
})

var dbRemoved = described(Cause{
	ID: DBOrSnapDirRemoved,
	Match: func(in *Input) *Match {
		return byKind(in, "the database in another place", check.KindDBRemoved)
	},
})

var snapRemoved = described(Cause{
	ID: SnapFilesRemoved,
	Match: func(in *Input) *Match {
		m := byKind(in, "the file in another copy of the data dir", check.KindSnapshotFileGone)
		if m == nil {
			m = byKind(in, "the times of the copies: the snap folder, or the list of files to copy, is older than the "+
				"file", check.KindSnapshotFileNotCopied)
			if m != nil {
				m.Certainty = Hint
			}
		}
		return weigh(in, m)
	},
})

var backupAsDB = described(Cause{
	ID: SavedSnapshotUsedAsDB,
	Match: func(in *Input) *Match {
		m := byKind(in, "a file that ends with the last page", check.KindBackupUsedAsDB)
		if m == nil {
			if m = byKind(in, "a snapshot record of the log at its index", check.KindCopyUsedAsDB); m != nil {
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
	ID: TornLiveCopy,
	Match: func(in *Input) *Match {
		if !in.found(check.X05) {
			return nil
		}
		return &Match{Certainty: Strong, Members: membersOf(in, check.X05), Because: ids(in, check.X05),
			RefutedBy: "a second copy, taken from the stopped server, with the same signs"}
	},
})

// isTornCopy reports whether a source was copied while its server wrote. Its buckets may then be of different moments.
func (in *Input) isTornCopy(label string) bool {
	return slices.Contains(membersOf(in, check.X05), label)
}

var versionMismatch = described(Cause{
	ID: DowngradeOrStorageVersionMismatch,
	Match: func(in *Input) *Match {
		return weigh(in, byKind(in, "the same version in all stores at a later moment", check.KindStorageVersionTooHigh,
			check.KindStorageVersionsDiffer,
			check.KindStorageVersionUnknown, check.KindStorageVersionImpossible, check.KindDowngradeUnfinished))
	},
})

var v2Content = described(Cause{
	ID: V2ContentBlocks36,
	Match: func(in *Input) *Match {
		return weigh(in, byKind(in, "a newer snapshot without these keys", check.KindV2KeysHeld,
			check.KindV2RequestsInLog))
	},
})
