package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

var alarmListIndexStuck = Cause{
	ID: "alarm-list-index-stuck", Title: "queries for alarms did not move the stored index, and the member does not start",
	Doc: `In 3.5.3 and 3.5.4 a request to list alarms, which goes through the log, did not move the consistent index. On an idle cluster whose health
checks list alarms a snapshot is taken above the stored index; after a power loss the server finds a database older than its snapshot and refuses to
start. Nothing is lost.
Proven: every entry between the database and the snapshot is in the log and without an effect, alarm queries among them.`,
	Affected: []string{"3.5.3 - 3.5.4"},
	FixedIn:  []string{"3.5.5"},
	Refs: append(refs("etcd-io/etcd", 14382, 11949), "https://github.com/etcd-io/etcd/pull/14419",
		"https://github.com/etcd-io/etcd/pull/14429"),
	LookAlikes: "the same picture with effective entries in the gap: data of the database is lost; refused entries " +
		"in it: auth-denied-index-stuck",
	Recovery: "upgrade; set the .snap files above the consistent index aside on a copy, if the log reaches back to " +
		"an older one; or reseed the member",
	Loss: "none",
	Match: func(in *Input) *Match {
		return allOn(in, release.AlarmQueryKeepsIndex, byField(in, "an entry in the gap that changes data", "S02",
			check.GapAlarmQueries))
	},
}

var authDeniedIndexStuck = Cause{
	ID: "auth-denied-index-stuck", Title: "refused entries did not move the stored index, and the member does not start",
	Doc: `In 3.5.3 an entry that the permission check refused did not move the consistent index. When the last entries before a snapshot were
refused, the snapshot lies above the stored index and the next start fails. Nothing is lost.
Strong: every entry between the database and the snapshot is in the log and without an effect, refused ones among them.`,
	Affected: []string{"3.5.3"},
	FixedIn:  []string{"3.5.4"},
	Refs:     append(refs("etcd-io/etcd", 13937), "https://github.com/etcd-io/etcd/pull/13946"),
	LookAlikes: "cindex-overwritten-after-snapshot (surplus revisions); pages of the database lost at a power " +
		"failure (entries in the gap have effects elsewhere)",
	Recovery: "upgrade to 3.5.4 or later, then set the newest .snap files aside on a copy so that an older one is " +
		"used; or reseed the member",
	Loss: "none",
	Match: func(in *Input) *Match {
		m := allOn(in, release.RefusedKeepsIndex, byField(in, "an entry in the gap that another member applied", "S02",
			check.GapRefused))
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

// allOn keeps a match whose members may all be of a release that follows a rule.
func allOn(in *Input, r *release.Rule, m *Match) *Match {
	if m == nil {
		return nil
	}
	for _, label := range m.Members {
		if x := in.member(label); x == nil || !x.Version.MayFollow(r) {
			return nil
		}
	}
	return m
}

var cindexOverwritten = Cause{
	ID: "cindex-overwritten-after-snapshot", Title: "the index from before a received snapshot was written into the " +
		"new database",
	Doc: `In 3.5.0 to 3.5.2 a member that recovered by a leader's snapshot committed the received database once with the consistent index it had before.
When it was killed before the next entry, the database holds everything up to the snapshot under an index far below: it does not start, or applies
entries a second time.
Strong: the index is below the newest snapshot, no received database waits, and the database holds records that only entries above its index
write.`,
	Affected: []string{"3.5.0 - 3.5.2"},
	FixedIn:  []string{"3.5.3"},
	Refs:     append(refs("etcd-io/etcd", 13922), "https://github.com/etcd-io/etcd/pull/13933"),
	LookAlikes: "alarm-list-index-stuck and cindex-below-snapshot-34 (no surplus records); a data dir that was " +
		"partly rolled back",
	Recovery: "reseed the member; do not start it on a log that still has the entries, or they are applied twice",
	Loss:     "none before a start; duplicate effects afterwards",
	Match: func(in *Input) *Match {
		m := allOn(in, release.SnapshotIndexReplaced,
			byField(in, "a database that ends where its consistent index says", "S02", check.GapOverwritten))
		if m != nil {
			m.Certainty = Strong
			m.Because = append(m.Because, ids(in, "C03")...)
		}
		return m
	},
}

var snapDBNotSynced = Cause{
	ID: "snap-db-dir-not-synced", Title: "a database received from the leader vanished at a power loss",
	Doc: `A member that is far behind receives a whole database as <index>.snap.db, records the snapshot in its log and then installs the file. Up to
3.5.34, 3.6.14 and 3.7.1 the directory was not synced before the record, so a power loss in between can keep the record and lose the file. The old
database is still there, and the server refuses to start.
Strong: the log jumps over entries to a snapshot that was never in it, ends shortly behind, the file is gone, and the database is the one from before:
it has applied all that the member knew to be committed when the snapshot came. An older one was put back (data-dir-rolled-back).`,
	Affected: []string{"up to 3.5.34", "3.6.0 - 3.6.14", "3.7.0 - 3.7.1"},
	FixedIn:  []string{"3.5.35", "3.6.15", "3.7.2"},
	Refs:     append(refs("etcd-io/etcd", 22340), "https://github.com/etcd-io/etcd/pull/22314"),
	LookAlikes: "the file deleted by hand; two snapshots in a row; a database put back from an older copy right " +
		"after the snapshot was received",
	Recovery: "reseed the member",
	Loss:     "of this member only: the leader that sent the snapshot has everything",
	Match: func(in *Input) *Match {
		m := byField(in, "the file of that snapshot, or a member that ran on behind it", "S02", check.GapNotInstalled)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var backendNewerThanLogStart = Cause{
	ID: "backend-newer-than-log-start", Title: "a received database and the log's snapshot were not recorded together",
	Doc: `In 3.0 and 3.1 a server that installed a leader's snapshot renamed the database before it recorded the snapshot in the log. A crash in between
leaves a database and a log that name different points.
Strong on data of 3.0 and 3.1 only.`,
	Affected: []string{"3.0.x - 3.1.16"},
	FixedIn:  []string{"3.1.17", "3.2.0"},
	Refs: append(refs("etcd-io/etcd", 7628, 8103), "https://github.com/etcd-io/etcd/pull/7876",
		"https://github.com/etcd-io/etcd/pull/9808"),
	LookAlikes: "every other cause of a gap, on later releases",
	Recovery:   "reseed the member",
	Loss:       "of this member only",
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Strong, Because: []string{}, RefutedBy: "a server of 3.2 or later"}
		for _, x := range in.Members {
			if v := x.Version.Text; (v == "3.0.x" || v == "3.1.x") && holdsMember(in, x.Label(), "S02", "D04") &&
				!holdsMember(in, x.Label(), "W01", "W02", "W03") {
				m.Members, m.Because = append(m.Members, x.Label()),
					append(m.Because, idsOf(in, x.Label(), "S02", "D04")...)
			}
		}
		if len(m.Members) == 0 {
			return nil
		}
		return m
	},
}

var cindexBelowSnapshot34 = Cause{
	ID: "cindex-below-snapshot-34", Title: "on 3.4 the newest snapshot is above the stored index, and no received " +
		"database is there",
	Doc: `After a kill or a power loss under load the database of a 3.4 member ends below its newest snapshot, and the server panics for a missing
<index>.snap.db. The reports were never explained for certain: an unsynced database, storage that lies, or the order of writes.
The state is certain, the cause is not: a database put back from an older copy looks the same.`,
	Affected:   []string{"3.4.x", "single reports on 3.2 and 3.3"},
	Refs:       refs("etcd-io/etcd", 17146, 11949, 12237, 12492),
	LookAlikes: "data-dir-rolled-back; snap-db-dir-not-synced (the snapshot was received)",
	Recovery: "start from an older .snap at or below the consistent index if the log reaches back to it, on a " +
		"copy; else reseed; on a single member recover the database alone",
	Loss: "up to the whole gap, if the log no longer covers it",
	Match: func(in *Input) *Match {
		return hintOn(byField(in, "an older copy of the database that was put in place", "S02", check.GapOther), in,
			func(x *evidence.Member) bool {
				return x.Version.MayFollow(release.IndexBelowSnapshot)
			})
	},
}

var snapDBMissingSecond = Cause{
	ID: "snap-db-missing-second-snapshot", Title: "two snapshots were received in a row, and the file of the first is gone",
	Doc: `A slow member that receives a second snapshot before it has installed the first looks for the file of the first, which was deleted as
outdated. It panics while it applies; its log names both snapshots.`,
	Affected:   []string{"all lines"},
	Refs:       refs("etcd-io/etcd", 18055, 20133),
	LookAlikes: "snap-db-dir-not-synced",
	Recovery:   "start it again; reseed it if that fails again",
	Loss:       "none",
	Match: func(in *Input) *Match {
		return hintOn(byField(in, "the file of the first snapshot", "S02", check.GapNotInstalled), in,
			func(x *evidence.Member) bool {
				n := 0
				for _, s := range x.WAL.Summary.Snapshots {
					if s.Index > x.ConsistentIndex() && check.Received(x, s.Index) {
						n++
					}
				}
				return n > 1
			})
	},
}

// hintOn lowers a match to a hint and keeps the members that fit.
func hintOn(m *Match, in *Input, fits func(*evidence.Member) bool) *Match {
	if m == nil {
		return nil
	}
	out := &Match{Certainty: Hint, RefutedBy: m.RefutedBy, Because: []string{}}
	for _, label := range m.Members {
		if x := in.member(label); x != nil && fits(x) {
			out.Members, out.Because = append(out.Members, label), append(out.Because, idsOf(in, label, "S02")...)
		}
	}
	if len(out.Members) == 0 {
		return nil
	}
	return out
}

var alarmRaiseIndexStuck = Cause{
	ID: "alarm-raise-index-stuck", Title: "raising an alarm once more did not move the stored index, and the member " +
		"does not start",
	Doc: `A member over its quota raises NOSPACE again and again. An alarm that is on already changes nothing, and the request did not move the consistent
index either; while no other write is possible a snapshot is taken above the stored index, and a start after a crash finds a database older than
its snapshot. Nothing is lost.
A hint: every entry between the database and the snapshot is in the log and without an effect, repeated alarms among them. Reported, not explained
upstream.`,
	Affected: []string{"reported on upgrades from 3.5.4 to 3.6.8"},
	Refs:     refs("etcd-io/etcd", 21636),
	LookAlikes: "alarm-list-index-stuck (queries among the entries); effective entries in the gap: data of the " +
		"database is lost",
	Recovery: "set the .snap files above the consistent index aside on a copy, if the log reaches back to an older " +
		"one; or reseed the member",
	Loss: "none",
	Match: func(in *Input) *Match {
		return onRelease(in, byField(in, "an entry in the gap that changes data", "S02", check.GapAlarmRaises),
			release.RaisedAlarmKeepsIndex, Hint, "S02")
	},
}
