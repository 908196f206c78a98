package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var walSegmentRenamed = described(Cause{
	ID: WALSegmentRenamed,
	Match: func(in *Input) *Match {
		const refuted = "the segment under that name in another copy of this data dir, with other entries"
		if m := byLogDamage(in, refuted, check.W03, dumplog.DamageName); m != nil {
			return m
		}
		m := byKind(in, refuted, check.KindFirstSegmentMisnamed)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var walRecordAltered = described(Cause{
	ID: WALSnapshotRecordAltered,
	Match: func(in *Input) *Match {
		m := proofOf(in, check.W01, "the same record in another copy of this log", func(f check.Finding) bool {
			return f.Facts.LogDamage == dumplog.DamageSnapshotRecord && !in.renumbered(f.Members)
		})
		if m == nil {
			m = byKind(in, "the same record in another copy of this log", check.KindRecordConfAltered,
				check.KindRecordIndexAltered)
			if m != nil && !slices.ContainsFunc(in.Findings[check.W06],
				func(f check.Finding) bool { return f.Is(check.KindRecordConfAltered) }) {
				m.Certainty = Strong
			}
		}
		return m
	},
})

// renumbered reports whether entries were removed from the log of one of the members and the later ones renumbered.
// Its snapshot records then contradict the entries around them, and none was altered.
func (in *Input) renumbered(members []string) bool {
	of := func(f check.Finding) bool {
		return (f.Is(check.KindEntriesRenumbered) || f.Is(check.KindCommitAheadOfLog)) &&
			slices.ContainsFunc(members, func(m string) bool { return slices.Contains(f.Members, m) })
	}
	return slices.ContainsFunc(in.Findings[check.R01], of) || slices.ContainsFunc(in.Findings[check.R08], of)
}
