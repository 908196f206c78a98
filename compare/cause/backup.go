package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var backupTruncated = described(Cause{
	ID: BackupTruncated,
	Match: func(in *Input) *Match {
		return byKind(in, "a longer copy of the same file whose trailer fits", check.KindBackupCut,
			check.KindTrailerCut)
	},
})

var backupHashMismatch = described(Cause{
	ID: BackupHashMismatch,
	Match: func(in *Input) *Match {
		const refuted = "another copy of the file whose trailer fits"
		if m := byKind(in, refuted, check.KindTrailerMismatch); m != nil {
			return m
		}
		return byKind(in, refuted, check.KindBackupAppended)
	},
})

var backupWithoutHash = described(Cause{
	ID: BackupWithoutHash,
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, RefutedBy: "the same file with 32 more bytes that are its sha256"}
		for _, b := range in.Findings[check.B01] {
			if b.Is(check.KindTrailerAbsent) &&
				!slices.ContainsFunc(in.Findings[check.B02],
					func(f check.Finding) bool { return slices.Equal(f.Members, b.Members) }) {
				m.Members, m.Because = append(m.Members, b.Members...), append(m.Because, b.ID)
			}
		}
		if len(m.Because) == 0 {
			return nil
		}
		return m
	},
})
