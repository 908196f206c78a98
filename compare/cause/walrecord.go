package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var walSegmentRenamed = Cause{
	ID: "wal-segment-renamed", Title: "a segment of the log carries the wrong name",
	Doc: `The name of a segment says its number and the index of its first entry. Here the name does not fit the entries and the CRC chain, which are
whole: the file was renamed, by hand or by a tool that collected the files. A server looks for its place by the names, so it finds none or begins
too late.
Proven by the entries in the segment and the segment before; strong where only the first segment is left to compare with the snapshots.`,
	LookAlikes: "wal-segment-missing, where the CRC chain is broken; a segment whose first entries a new leader has " +
		"replaced, which is normal",
	Recovery: "on a copy, give the file the name that its number in the CRC chain and its first entry say; else " +
		"reseed the member",
	Loss: "none",
	Match: func(in *Input) *Match {
		const refuted = "the segment under that name in another copy of this data dir, with other entries"
		if m := byField(in, refuted, "W03", string(dumplog.DamageName)); m != nil {
			return m
		}
		m := byField(in, refuted, "W05", string(dumplog.DamageName))
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var walRecordAltered = Cause{
	ID: "wal-snapshot-record-altered", Title: "a snapshot record of the log was altered",
	Doc: `The CRC chain of the log holds, and a snapshot record names an index, a term or a configuration that the entries, the records around it or its
.snap file contradict: memory altered it before it was written, or somebody edited the log and wrote new CRCs. A server takes the newest .snap
file that has a record, so it passes over that file, or refuses to start (snapshot mismatch).
Proven by entries and records of the same log and by the .snap file of the same index; strong where a record without a file and a file without a
record are taken for each other's counterpart.`,
	LookAlikes: "a file without a record alone, which a crash leaves; a record without a file alone, which was " +
		"purged or removed (snap-files-removed)",
	Recovery: "reseed the member; test the memory of its machine",
	Loss:     "none, the database holds what the snapshot covers",
	Match: func(in *Input) *Match {
		m := byField(in, "the same record in another copy of this log", "W01", string(dumplog.DamageSnapshotRecord))
		if m == nil {
			m = byField(in, "the same record in another copy of this log", "W06", check.FieldRecordConf,
				check.FieldRecordIndex)
			if m != nil && !slices.ContainsFunc(in.Findings["W06"],
				func(f check.Finding) bool { return fieldIs(f, []string{check.FieldRecordConf}) }) {
				m.Certainty = Strong
			}
		}
		return m
	},
}
