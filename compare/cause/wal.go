package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var walTornTailNotRepaired = Cause{
	ID: "wal-torn-tail-not-repaired", Title: "a server of 3.5.5 or 3.5.6 does not repair this torn tail",
	Doc: `The last record is torn, and its length word reaches beyond the end of the file. Every other release cuts such a tail off at the next start;
3.5.5 and 3.5.6 take the length for an oversized entry and refuse to start ("max entry size limit exceeded").
The shape is proven; whether the server refuses follows from its patch release, which no file tells.`,
	Affected:   []string{"3.5.5 - 3.5.6"},
	FixedIn:    []string{"3.5.7"},
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/15068", "https://github.com/etcd-io/etcd/pull/15069"},
	LookAlikes: "wal-entry-over-10mb (the record is whole and its CRC holds)",
	Recovery:   "start the member with 3.5.7 or later; or cut the tail off a copy",
	Loss:       "as for wal-torn-tail",
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Strong, Because: []string{},
			RefutedBy: "a server of another release than 3.5.5 and 3.5.6"}
		for _, x := range in.Members {
			if !x.HasWAL() || !x.Version.MayFollow(release.TornWriteRefused) {
				continue
			}
			for _, d := range x.WAL.Summary.Damage {
				if d.Kind == dumplog.DamageTornTail && d.Short {
					m.Members, m.Because = append(m.Members, x.Label()),
						append(m.Because, idsOf(in, x.Label(), "W02")...)
				}
			}
		}
		if len(m.Because) == 0 {
			return nil
		}
		return m
	},
}

var walHoleZeroed = Cause{
	ID: "wal-hole-zeroed", Title: "zeros inside of a segment hide sound records behind them",
	Doc: `A length word of zero ends a segment for every reader of etcd. Here whole records that continue the log stand behind the zeros: a page was
lost at a power failure, or a sparse copy or a file system repair punched a hole. A server takes the hole for the end, starts without an error, and
zeroes what stands behind it when it writes on.`,
	LookAlikes: "preallocated zeros at the end of the last segment (nothing stands behind them); bytes of an older, " +
		"reused file (lower indexes, the CRC chain does not fit)",
	Recovery: "copy the log before any start; then reseed the member, or rebuild from the entries behind the hole " +
		"if no other member holds them",
	Loss: "entries in the hole, and on this member everything behind it",
	Match: func(in *Input) *Match {
		m := byField(in, "the same place with records in another copy of this data dir", "W01",
			string(dumplog.DamageZeroHole))
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var walEntryIndexGap = Cause{
	ID: "wal-entry-index-gap", Title: "the index of entries jumps inside of the log",
	Doc: `Two neighbours in the log, with every byte and CRC in order, whose indexes do not follow each other, and no snapshot record explains it. The
log was put together from parts, edited, or written by a server that stored entries before their snapshot.
Proven as a state: arithmetic over records that the CRC proves.`,
	Affected: []string{"panic instead of an error: up to 3.2.31, 3.3.22, 3.4.9"},
	FixedIn:  []string{"3.2.32", "3.3.23", "3.4.10", "3.5.0"},
	Refs:     []string{"https://github.com/etcd-io/etcd/pull/11793"},
	LookAlikes: "a jump right behind a snapshot record: a snapshot that a leader sent; a missing segment or a " +
		"damaged place (told as such)",
	Recovery: "reseed the member; on a single member combine the database with the log behind the gap",
	Loss:     "the entries in the gap that no other member holds",
	Match: func(in *Input) *Match {
		return byField(in, "a snapshot record at the index before the jump", "W03", string(dumplog.DamageIndexGap))
	},
}

var hardStateBeyondLog = Cause{
	ID: "hardstate-beyond-log", Title: "the commit index of HardState lies beyond the end of the log",
	Doc: `Every byte of the log is in order, but its HardState commits entries that it does not hold. Up to 3.3.20 and 3.4.7 a member that was killed
while it installed a snapshot had stored the HardState and not yet the snapshot's record; later releases write the record first. Otherwise the end of
the log was lost. A server refuses to start ("state.commit is out of range").
Proven as a state. When a .snap or .snap.db file of the committed index is there, it was the installation.`,
	Affected: []string{"up to 3.3.20", "3.4.0 - 3.4.7"},
	FixedIn:  []string{"3.3.21", "3.4.8", "3.5.0"},
	Refs: []string{"https://github.com/etcd-io/etcd/issues/10219", "https://github.com/etcd-io/etcd/pull/11888",
		"https://github.com/etcd-io/etcd/issues/5664"},
	LookAlikes: "wal-tail-lost (the database has applied the lost entries); a torn or damaged end of the log (told as such)",
	Recovery:   "with the file of the snapshot at hand set the start of the log to it on a copy; else reseed the member",
	Loss:       "none if reseeded",
	Match: func(in *Input) *Match {
		return stateOf(in, "R03", "an entry or snapshot at that index in the log", func(x *evidence.Member) bool {
			return x.ConsistentIndex() <= x.LastIndex()
		})
	},
}

var singleMemberAck = Cause{
	ID: "single-member-ack-before-sync", Title: "a cluster of one member acknowledged writes before its log had them",
	Doc: `Up to 3.4.20 and 3.5.4 a cluster with one voter applied entries and answered clients before the log was synced. A power failure right behind the
answer leaves a database that has applied entries the log does not hold; when the database had not been committed either, nothing shows the loss.
Strong: one voter, and a consistent index above the last index of a log that is in order.`,
	Affected: []string{"up to 3.4.20", "3.5.0 - 3.5.4"},
	FixedIn:  []string{"3.4.21", "3.5.5", "3.6.0"},
	Refs: []string{"https://github.com/etcd-io/etcd/issues/14370", "https://github.com/etcd-io/etcd/pull/14423",
		"https://github.com/etcd-io/etcd/pull/14424"},
	LookAlikes: "wal-tail-lost by storage that acknowledges what it did not write, or by --unsafe-no-fsync",
	Recovery: "keep the database; make the log start at its consistent index on a copy before any start, or new " +
		"entries take indexes that the database skips",
	Loss: "the writes behind the last synced record that the database does not hold",
	Match: func(in *Input) *Match {
		m := stateOf(in, "D04", "a second voter in the configuration", func(x *evidence.Member) bool {
			return oneVoter(x) && x.Version.MayLack(release.SyncBeforeApply)
		})
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var walTailLost = Cause{
	ID: "wal-tail-lost", Title: "the database has applied entries that the log has lost",
	Doc: `The log is in order up to its last record, and the database has applied entries beyond it. The end of the log was lost after it was written:
storage that acknowledges what it did not write, an older copy of the wal folder, --unsafe-no-fsync, or --force-new-cluster before its fix.
Proven as a state. The member may vote again in a term in which it has voted, and new entries at the lost indexes would be skipped by the database.`,
	Refs: refs("etcd-io/etcd", 14143, 14140, 6368),
	LookAlikes: "single-member-ack-before-sync (one voter, up to 3.4.20 and 3.5.4); a torn or damaged end of the log " +
		"(told as such); a separate --wal-dir that was left out",
	Recovery: "do not start it in the cluster: reseed it; on a single member make the log start at the consistent " +
		"index on a copy",
	Loss: "entries that only it held; the safety of raft is in doubt for the time of the loss",
	Match: func(in *Input) *Match {
		return stateOf(in, "D04", "the lost entries in another copy of this member's log",
			func(x *evidence.Member) bool {
				return !oneVoter(x) || !x.Version.MayLack(release.SyncBeforeApply)
			})
	},
}

func oneVoter(m *evidence.Member) bool {
	return m.Membership.RaftKnown && len(m.Membership.Voters) == 1
}

// stateOf takes the findings of a check for proof of a state, on members that fit and whose log shows no damage that
// explains it.
func stateOf(in *Input, checkID, refutedBy string, fits func(*evidence.Member) bool) *Match {
	m := &Match{Certainty: Proof, Because: []string{}, RefutedBy: refutedBy}
	for _, f := range in.Findings[checkID] {
		x := in.member(f.Members[0])
		if x == nil || holdsMember(in, x.Label(), "W01", "W02", "W03") || !fits(x) {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()), append(m.Because, f.ID)
	}
	if len(m.Because) == 0 {
		return nil
	}
	return m
}

var walPurgedWhileNeeded = Cause{
	ID: "wal-purged-while-needed", Title: "a segment that a start needs was removed",
	Doc: `The first entry that is left in the log lies behind the newest snapshot it names. Up to 3.2.27, 3.3.17 and 3.4.3 the purging of old segments
could run while the server closed its files at a stop, and removed segments whose locks were gone already.
Strong: deleting segments from the front by hand looks the same.`,
	Affected:   []string{"up to 3.1.x", "3.2.0 - 3.2.27", "3.3.0 - 3.3.17", "3.4.0 - 3.4.3"},
	FixedIn:    []string{"3.2.28", "3.3.18", "3.4.4"},
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/11308"},
	LookAlikes: "segments deleted by hand; a normally purged log, which reaches back to before its newest snapshot",
	Recovery: "when the database has applied the gap, make a start point at its consistent index on a copy; else " +
		"reseed the member",
	Loss: "none if the database covers the gap",
	Match: func(in *Input) *Match {
		m := byField(in, "the missing segments, or a snapshot record that the log still holds", "W05", "purged")
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var walEntryOver10MB = Cause{
	ID: "wal-entry-over-10mb", Title: "a sound entry is too large for the server to read back",
	Doc: `A request above 10 MiB was let in by --max-request-bytes and written to the log. Some releases refuse to read a record of that size at the
next start ("max entry size limit exceeded"), although nothing is wrong with it.
Proven: the size stands in the record and its CRC holds.`,
	Affected: []string{"3.2.32", "3.3.23 - 3.3.27", "3.4.10 - 3.4.45", "3.5.0 - 3.5.4"},
	FixedIn:  []string{"3.5.5"},
	Refs: []string{"https://github.com/etcd-io/etcd/pull/11793", "https://github.com/etcd-io/etcd/pull/14122",
		"https://github.com/etcd-io/etcd/pull/14127"},
	LookAlikes: "a damaged length word: the CRC does not hold",
	Recovery:   "start the member with 3.5.5 or later, or let such a server take a snapshot past the entry",
	Loss:       "none",
	Match: func(in *Input) *Match {
		return besideVerdict(byField(in, "a CRC that does not fit the record", "W04", "oversize"))
	},
}

var walCRCFalseAlarm = Cause{
	ID: "wal-crc-false-alarm", Title: "a server of 3.3.21 or 3.4.8 reports a crc mismatch on this sound log",
	Doc: `These two releases begin the CRC chain of a purged log with 0 instead of the value in its first CRC record and refuse to start after the first
segment was purged. The log is sound: every record continues the chain.
Proven for the log; that this server is one of the two is not told by any file.`,
	Affected:   []string{"3.3.21", "3.4.8"},
	FixedIn:    []string{"3.3.22", "3.4.9"},
	Refs:       []string{"https://github.com/etcd-io/etcd/issues/11918", "https://github.com/etcd-io/etcd/pull/11924"},
	LookAlikes: "a real mismatch, which W01 tells",
	Recovery:   "upgrade the server; do not touch the log",
	Loss:       "none",
	Match: func(in *Input) *Match {
		m := besideVerdict(byField(in, "a record whose CRC does not hold; a server of another release", "W05",
			"purged and sound"))
		if m != nil {
			m.Certainty = Hint
		}
		return m
	},
}
