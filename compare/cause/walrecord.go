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
		m := byLogDamage(in, "the same record in another copy of this log", check.W01, dumplog.DamageSnapshotRecord)
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
