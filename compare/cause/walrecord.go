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
		if m := byField(in, refuted, check.W03, string(dumplog.DamageName)); m != nil {
			return m
		}
		m := byField(in, refuted, check.W05, string(dumplog.DamageName))
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var walRecordAltered = described(Cause{
	ID: WALSnapshotRecordAltered,
	Match: func(in *Input) *Match {
		m := byField(in, "the same record in another copy of this log", check.W01, string(dumplog.DamageSnapshotRecord))
		if m == nil {
			m = byField(in, "the same record in another copy of this log", check.W06, check.FieldRecordConf,
				check.FieldRecordIndex)
			if m != nil && !slices.ContainsFunc(in.Findings[check.W06],
				func(f check.Finding) bool { return fieldIs(f, []string{check.FieldRecordConf}) }) {
				m.Certainty = Strong
			}
		}
		return m
	},
})
