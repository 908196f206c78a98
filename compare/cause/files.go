package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var walTornTail = described(Cause{
	ID: WALTornTail,
	Match: func(in *Input) *Match {
		const refuted = "a complete record after the torn one"
		if m := byLogDamage(in, refuted, check.W02, dumplog.DamageTornTail); m != nil {
			return m
		}
		m := byLogDamage(in, refuted, check.W02, dumplog.DamageTail)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var bboltPageDamage = described(Cause{
	ID:    BboltPageDamage,
	Match: matchPageDamage,
})

func matchPageDamage(in *Input) *Match {
	m := byDBDamage(in, "the same page read soundly from another copy of this data dir", pageKinds...)
	if m != nil {
		return m
	}
	m = proofOf(in, check.D03, "the same row in another copy of this data dir, as sound",
		func(f check.Finding) bool { return f.Facts.Bucket != "key" })
	if m != nil {
		m.Certainty = Strong
	}
	return m
}

var walCRCMismatch = described(Cause{
	ID: WALCRCMismatch,
	Match: func(in *Input) *Match {
		return byLogDamage(in, "the same record read soundly from another copy of this data dir", check.W01,
			dumplog.DamageCRC, dumplog.DamageFrame,
			dumplog.DamageType, dumplog.DamagePayload, dumplog.DamageForeign,
			dumplog.DamageTruncated)
	},
})

var walSegmentMissing = described(Cause{
	ID: WALSegmentMissing,
	Match: func(in *Input) *Match {
		return byLogDamage(in, "the missing segment file", check.W03, dumplog.DamageMissingSegment)
	},
})

var snapFileDamaged = described(Cause{
	ID: SnapFileDamaged,
	Match: func(in *Input) *Match {
		if !in.found(check.S01) {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, check.S01), Because: ids(in, check.S01),
			RefutedBy: "the file read soundly from another copy of this data dir"}
	},
})

var dbTruncated = described(Cause{
	ID: DBTruncated,
	Match: func(in *Input) *Match {
		// A reference beyond the end of the file alone is a damaged page. Only the meta page says how long the file
		// must be.
		return byDBDamage(in, "a longer copy of the same file", dumpdb.DamageTruncated)
	},
})

var bboltMetaDamage = described(Cause{
	ID: BboltMetaDamage,
	Match: func(in *Input) *Match {
		const refuted = "the same page read soundly from another copy of this data dir"
		if m := byDBDamage(in, refuted, dumpdb.DamageMeta); m != nil {
			return m // neither page validates: the file does not open
		}
		return byKind(in, refuted, check.KindMetaPageInvalid)
	},
})

var dirRolledBack = described(Cause{
	ID: DataDirRolledBack,
	Match: func(in *Input) *Match {
		if m := proofOf(in, check.R10, "a longer copy of this member's log: the source was then only copied before "+
			"the others", serious); m != nil {
			m.Certainty = Strong // the times of files exclude that, and copying can change them
			return m
		}
		const refuted = "a database of this member at or above the snapshot's index"
		if m := byKind(in, refuted, check.KindGapOther); m != nil {
			m.Certainty = Strong
			return m
		}
		m := byKind(in, refuted, check.KindGapNotInstalled)
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
})

var timesDiffer = described(Cause{
	ID: WALAndDBFromDifferentTimes,
	Match: func(in *Input) *Match {
		if m := unexplainedRevisions(in); m != nil {
			return m
		}
		found := termFindings(in)
		if len(found) == 0 || matchMetaTermBehind(in) != nil {
			return nil
		}
		m := &Match{Certainty: Strong, RefutedBy: "the entry at that index with the term that the database stores"}
		for _, f := range found {
			m.Members, m.Because = append(m.Members, f.Members...), append(m.Because, f.ID)
		}
		return m
	},
})

// unexplainedRevisions finds members whose log is whole from the first entry of a new cluster on, and whose database
// holds more revisions than the entries that it has applied can have made.
func unexplainedRevisions(in *Input) *Match {
	if in.Replay == nil || in.found(check.C01, check.C03, check.C04, check.M11) {
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
			append(m.Because, idsOf(in, x.Label(), check.K03, check.D05, check.D04)...)
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}
