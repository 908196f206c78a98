package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var walTornTail = described(Cause{
	ID: "wal-torn-tail",
	Match: func(in *Input) *Match {
		const refuted = "a complete record after the torn one"
		if m := byField(in, refuted, "W02", string(dumplog.DamageTornTail)); m != nil {
			return m
		}
		m := byField(in, refuted, "W02", string(dumplog.DamageTail))
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var bboltPageDamage = described(Cause{
	ID:    "bbolt-page-damage",
	Match: matchPageDamage,
})

func matchPageDamage(in *Input) *Match {
	m := byField(in, "the same page read soundly from another copy of this data dir", "D02", pageKinds...)
	if m != nil {
		return m
	}
	m = proofOf(in, "D03", "the same row in another copy of this data dir, as sound",
		func(f check.Finding) bool { return f.Evidence[0].Bucket != "key" })
	if m != nil {
		m.Certainty = Strong
	}
	return m
}

var walCRCMismatch = described(Cause{
	ID: "wal-crc-mismatch",
	Match: func(in *Input) *Match {
		return byField(in, "the same record read soundly from another copy of this data dir", "W01",
			string(dumplog.DamageCRC), string(dumplog.DamageFrame),
			string(dumplog.DamageType), string(dumplog.DamagePayload), string(dumplog.DamageForeign),
			string(dumplog.DamageTruncated))
	},
})

var walSegmentMissing = described(Cause{
	ID: "wal-segment-missing",
	Match: func(in *Input) *Match {
		return byField(in, "the missing segment file", "W03", string(dumplog.DamageMissingSegment))
	},
})

var snapFileDamaged = described(Cause{
	ID: "snap-file-damaged",
	Match: func(in *Input) *Match {
		if len(in.Findings["S01"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "S01"), Because: ids(in, "S01"),
			RefutedBy: "the file read soundly from another copy of this data dir"}
	},
})

var dbTruncated = described(Cause{
	ID: "db-truncated",
	Match: func(in *Input) *Match {
		// A reference beyond the file alone is a damaged page: the meta page says how long the file has to be.
		return byField(in, "a longer copy of the same file", "D02", string(dumpdb.DamageTruncated))
	},
})

var bboltMetaDamage = described(Cause{
	ID: "bbolt-meta-damage",
	Match: func(in *Input) *Match {
		const refuted = "the same page read soundly from another copy of this data dir"
		if m := byField(in, refuted, "D02", string(dumpdb.DamageMeta)); m != nil {
			return m // neither page validates: the file does not open
		}
		return byField(in, refuted, "D01", "meta")
	},
})

var dirRolledBack = described(Cause{
	ID: "data-dir-rolled-back",
	Match: func(in *Input) *Match {
		if m := proofOf(in, "R10", "a longer copy of this member's log: the source was then only copied before the others", serious); m != nil {
			return m
		}
		const refuted = "a database of this member at or above the snapshot's index"
		if m := byField(in, refuted, "S02", check.GapOther); m != nil {
			m.Certainty = Strong
			return m
		}
		m := byField(in, refuted, "S02", check.GapNotInstalled)
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
})

var timesDiffer = described(Cause{
	ID: "wal-and-db-from-different-times",
	Match: func(in *Input) *Match {
		if m := unexplainedRevisions(in); m != nil {
			return m
		}
		if len(in.Findings["D05"]) == 0 || matchMetaTermBehind(in) != nil {
			return nil
		}
		return &Match{Certainty: Strong, Members: membersOf(in, "D05"), Because: ids(in, "D05"),
			RefutedBy: "the entry at that index with the term that the database stores"}
	},
})

// unexplainedRevisions finds members whose log is whole from the first entry of a new cluster on, and whose database
// holds more revisions than the entries that it has applied can have made.
func unexplainedRevisions(in *Input) *Match {
	if in.Replay == nil || len(in.Findings["C01"])+len(in.Findings["C03"])+len(in.Findings["C04"])+len(in.Findings["M11"]) > 0 {
		return nil
	}
	m := &Match{Certainty: Proof, Because: []string{}, RefutedBy: "segments of this log from before its first entry; " +
		"a restore that the database comes from"}
	for i, r := range in.Replay.Members {
		x := in.Members[i]
		if !r.Checked || !x.HasLog() || x.WAL.Summary.FirstIndex != 1 || check.Restored(x) ||
			len(x.WAL.Summary.Damage)+len(x.WAL.Summary.Jumps) > 0 || x.DB.KV.BumpMarker.Main != 0 {
			continue
		}
		if len(r.Extra) == 0 || r.Extra[0] > 2 || x.CurrentRevision()-1 <= r.Writes || r.BaseIndex > 0 ||
			x.ConsistentIndex() > x.LastIndex() {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()),
			append(m.Because, idsOf(in, x.Label(), "K03", "D05", "D04")...)
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}
