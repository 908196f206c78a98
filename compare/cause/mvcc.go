package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var mvccContradiction = described(Cause{
	ID: MVCCRecordContradiction,
	Match: func(in *Input) *Match {
		m := aside(in, check.K04, "the same records read from another copy of this database",
			func(check.Finding) bool { return true })
		if m != nil {
			// If the log or other members show what the record should be, K01 or K03 explains more than the state of
			// the file.
			m.Secondary = in.found(check.K01, check.K03) &&
				!slices.ContainsFunc(in.Findings[check.K04],
					func(f check.Finding) bool { return f.Facts.Undecodable })
		}
		return m
	},
})

var revisionDecrease = described(Cause{
	ID: RevisionDecreaseAfterCompactionCrash,
	Match: func(in *Input) *Match {
		m := aside(in, check.K10, "a record at the scheduled revision; a finished compaction",
			func(f check.Finding) bool {
				return f.Is(check.KindRevisionBelowScheduled) && !slices.ContainsFunc(f.Members, in.isTornCopy)
			})
		if done := aside(in, check.K10, "contents that differ in more than revision numbers",
			func(f check.Finding) bool { return f.Is(check.KindRevisionReused) }); done != nil {
			m, done.Certainty, done.Secondary = done, Strong, false
			m.Because = append(m.Because, ids(in, check.K03, check.K02, check.K01)...)
		}
		return m
	},
})

var tombstoneDropped = described(Cause{
	ID: TombstoneDroppedAtCompactRevision,
	Match: func(in *Input) *Match {
		if in.found(check.K01) {
			return nil
		}
		return aside(in, check.K07, "the key of one of the tombstones alive on a member",
			func(check.Finding) bool { return true })
	},
})
