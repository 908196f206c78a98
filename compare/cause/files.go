package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var walTornTail = Cause{
	ID: "wal-torn-tail", Title: "the last WAL record was only partly written",
	Doc: `A crash or power loss in the middle of an append leaves the last record of the last segment incomplete: the file ends inside of it, its
rest is zeros, or older bytes of the disk stand there. Where the file ends or a sector is all zeros, etcd cuts it off at the next start and keeps the old
file as .broken; anything else it refuses with a CRC mismatch, though nothing but the end is lost. With a majority holding the entry nothing is
lost: the member fetches it again.
Proven where the rest is missing or zeros; strong where other bytes stand there, which an overwritten end shows as well.`,
	Refs: refs("etcd-io/etcd", 5230, 6271),
	LookAlikes: "a value with long runs of zeros plus a flipped bit; a copy taken while the server wrote; one " +
		"flipped bit in the last record (wal-crc-mismatch)",
	Recovery: "start the member (it cuts a torn tail and catches up), or cut the end off a copy where the server " +
		"refuses; if no other member holds the entry, treat it as a lost write",
	Loss: "none if another member holds the entry; on a single member the entry is gone",
	Match: func(in *Input) *Match {
		const refuted = "a complete record behind the torn one"
		if m := byField(in, refuted, "W02", string(dumplog.DamageTornTail)); m != nil {
			return m
		}
		m := byField(in, refuted, "W02", string(dumplog.DamageTail))
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var bboltPageDamage = Cause{
	ID: "bbolt-page-damage", Title: "pages of the database are damaged",
	Doc: `A page that the tree refers to is not the page it should be: wrong number, type or order, a reference outside the file, or a page used
twice. bbolt stops with a panic at the first one. The log of the member is usually intact, and other members hold the same rows.
Proven by pages that contradict each other. Strong where every page is in order and a row of a small bucket (members, auth, leases, alarms, meta)
does not decode: bytes inside of the page changed, which bbolt has no checksum for; a foreign tool that wrote the row looks the same.`,
	Refs: append(refs("etcd-io/etcd", 14211, 17084, 10010), refs("etcd-io/bbolt", 402, 446, 701)...),
	LookAlikes: "a torn copy of a running member (compare with the time of the copy); records of bucket key that do " +
		"not decode (mvcc-record-contradiction)",
	Recovery: "several members: reseed this one from a sound one; single member: salvage readable pages and replay the log",
	Loss:     "from nothing (other members) to the rows on the damaged pages",
	Match:    matchPageDamage,
}

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

var walCRCMismatch = Cause{
	ID: "wal-crc-mismatch", Title: "bytes of the log changed after they were written",
	Doc: `The CRC of a record does not fit its data, or a frame is no frame any more, while what stands behind it does: bit rot, lost sectors after
a power failure, or an edited file. A server refuses to start or silently loses what follows.`,
	LookAlikes: "a torn last record (the end of the log); segment starts on 3.3.21 and 3.4.8 alone, which wrote " +
		"wrong CRC records",
	Recovery: "reseed the member; on a single member combine the database with what is readable behind the damage",
	Loss:     "entries in the damaged place that no other member holds",
	Match: func(in *Input) *Match {
		return byField(in, "the same record read soundly from another copy of this data dir", "W01",
			string(dumplog.DamageCRC), string(dumplog.DamageFrame),
			string(dumplog.DamageType), string(dumplog.DamagePayload), string(dumplog.DamageForeign),
			string(dumplog.DamageTruncated))
	},
}

var walSegmentMissing = Cause{
	ID: "wal-segment-missing", Title: "a segment of the log is missing",
	Doc: `The numbers of the segment files have a hole, or the last file is a closed segment without a successor: a file was deleted by hand or not
copied. The server purges from the front only, and creates the next segment when it closes one.`,
	LookAlikes: "purging, which removes from the front and leaves no hole; wal-tail-lost, where the last segment is " +
		"cut short before it was full",
	Recovery: "copy the segment again; else reseed the member",
	Loss:     "entries in the hole that no other member holds",
	Match: func(in *Input) *Match {
		return byField(in, "the missing segment file", "W03", string(dumplog.DamageMissingSegment))
	},
}

var snapFileDamaged = Cause{
	ID: "snap-file-damaged", Title: "a raft snapshot file can not be read",
	Doc: `The CRC or the content of a .snap file is wrong. A server up to 3.6 renames it to .broken and takes the next older one, if the log
reaches back that far; from 3.7 on the file is not read at boot.`,
	LookAlikes: "an orphan that a crash left: it decodes, but the log has no record of it",
	Recovery:   "start with the next older one if the log reaches back to it, else reseed the member",
	Loss:       "none if an older one serves",
	Match: func(in *Input) *Match {
		if len(in.Findings["S01"]) == 0 {
			return nil
		}
		return &Match{Certainty: Proof, Members: membersOf(in, "S01"), Because: ids(in, "S01"),
			RefutedBy: "the file read soundly from another copy of this data dir"}
	},
}

var dbTruncated = Cause{
	ID: "db-truncated", Title: "the database file is shorter than its content",
	Doc: `The meta page says how many pages the file has; the file ends before. Or the file is too short for a meta page. An interrupted copy, a full
disk, or a file system repair.
An empty file (0 bytes) is the worst case: bbolt initialises it as a new database, so a server would start with an empty key space instead of an
error. Where the log names a raft snapshot, etcd refuses to start on it.`,
	LookAlikes: "none: a file longer than its content is normal, a shorter one never",
	Recovery:   "copy it again; else reseed the member",
	Loss:       "the pages behind the end",
	Match: func(in *Input) *Match {
		// A reference beyond the file alone is a damaged page: the meta page says how long the file has to be.
		return byField(in, "a longer copy of the same file", "D02", string(dumpdb.DamageTruncated))
	},
}

var bboltMetaDamage = Cause{
	ID: "bbolt-meta-damage", Title: "a meta page of the database is invalid",
	Doc: `One of the two meta pages does not validate: a power loss while it was written, or an overwritten header. bbolt opens the file at the
other one, silently and one transaction older. With both invalid it does not open.`,
	LookAlikes: "a page size other than 4096 on other architectures: it is read from the page itself",
	Recovery: "with one valid page the log replays what the older transaction lacks; with none rebuild from " +
		"readable pages, or reseed",
	Loss: "the last transaction, which the log covers",
	Match: func(in *Input) *Match {
		const refuted = "the same page read soundly from another copy of this data dir"
		if m := byField(in, refuted, "D02", string(dumpdb.DamageMeta)); m != nil {
			return m // neither page validates: the file does not open
		}
		return byField(in, refuted, "D01", "meta")
	},
}

var dirRolledBack = Cause{
	ID: "data-dir-rolled-back", Title: "the database is from an earlier time than the log",
	Doc: `The whole data dir was put back from an older copy, such as a reverted volume snapshot, or the database alone was.
Of the whole dir proven when the other logs show that this log once went further: the member served clients behind a publish entry that its
log does not reach, or must have given a vote in a term that it does not know. Of the database strong when the newest raft snapshot in the log
was taken when the database had applied more than it holds now; a hint where the snapshot was received and the database is exactly that of the
moment before, because a file that was lost leaves the same.`,
	Refs: refs("etcd-io/etcd", 13509, 9630),
	LookAlikes: "a lagging member, whose votes and publish entries are in its log; a received snapshot whose " +
		"database was not installed yet (<index>.snap.db is there) or was lost (snap-db-dir-not-synced)",
	Recovery: "treat the member as one that lost its data: remove, wipe, add again",
	Loss:     "its acknowledgements are forgotten",
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
}

var timesDiffer = Cause{
	ID: "wal-and-db-from-different-times", Title: "log and database do not belong together",
	Doc: `Index and term that the database stores name no entry of the log: the wal folder and the snap folder were copied or restored at
different times, or a separate --wal-dir was left out.
Proven when the log is whole from its first entry on, and the database begins with revisions that no entry made and holds more than all of them
can have made.`,
	LookAlikes: "a database written last by 3.4 or older, which stores no term",
	Recovery:   "copy or restore both folders together",
	Loss:       "what only the missing half held",
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
}

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
