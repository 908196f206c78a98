package cause

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// pageKinds are the kinds of damage that contradict the page graph.
var pageKinds = []string{string(dumpdb.DamagePage), string(dumpdb.DamagePageID), string(dumpdb.DamageCycle),
	string(dumpdb.DamageDoubleUse),
	string(dumpdb.DamageKeyOrder), string(dumpdb.DamageOutOfFile)}

var bucketNamesRevisions = Cause{
	ID: "bucket-names-are-revisions", Title: "the database was copied while a server wrote to it",
	Doc: `The root page holds rows of bucket key, so the list of buckets shows binary revisions. The meta page was copied first, and the page that it
names as root was used again before it was copied.
Strong: damage by storage rarely puts a sound page of bucket key exactly there.`,
	Refs:       refs("etcd-io/etcd", 13109),
	LookAlikes: "page damage after a power loss",
	Recovery:   "take a snapshot, or copy again from the stopped member; the older meta page may lead to a sound root",
	Loss:       "usually none: the source is sound",
	Match: func(in *Input) *Match {
		m := byField(in, "the same root page in a copy of the stopped member", "D06", "root")
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
}

var backupRacesRename = Cause{
	ID: "backup-races-rename", Title: "a backup was read from another file than its meta page",
	Doc: `A snapshot opens the database by its path once more while it streams. When a defragmentation or the installation of a received database replaces the
file at that moment, the stream carries the meta pages of the old file and the pages of the new one. The sha256 is computed over the stream and
fits.
Strong: the trailer of the backup fits, both meta pages are those of a saved snapshot, and pages that are whole contradict each other: the file was
wrong when it was written.`,
	Affected: []string{"bbolt up to 1.3.11, 1.4.0 - 1.4.2 (etcd up to 3.4.37, 3.5.22, 3.6.4)"},
	FixedIn:  []string{"bbolt 1.3.12, 1.4.3 (etcd 3.4.38, 3.5.23, 3.6.5)"},
	Refs: []string{"https://github.com/etcd-io/bbolt/pull/1057", "https://github.com/etcd-io/bbolt/pull/1058",
		"https://github.com/etcd-io/bbolt/pull/1059"},
	LookAlikes: "bit rot in the backup (the sha256 does not fit, or a page is noise); damage that the source's " +
		"database has too (check it)",
	Recovery: "take another backup, and check pages and content of every one: a fitting sha256 proves only that " +
		"the file is what was sent",
	Loss: "the whole backup",
	Match: func(in *Input) *Match {
		m := byField(in, "the same damage in the database that the backup was taken from", "D02", pageKinds...)
		if m == nil {
			return nil
		}
		out := &Match{Certainty: Strong, Because: []string{}, RefutedBy: m.RefutedBy}
		for _, label := range m.Members {
			if x := in.member(label); x != nil && x.DB.Trailer.State == "match" && savedSnapshot(x) &&
				pagesOfAFile(in, x) {
				out.Members, out.Because = append(out.Members, label), append(out.Because, idsOf(in, label, "D02")...)
			}
		}
		if len(out.Members) == 0 {
			return nil
		}
		return out
	},
}

// pagesOfAFile tells whether every damaged page is still a page of a bbolt file, if of another one: noise is damage by
// storage.
func pagesOfAFile(in *Input, m *evidence.Member) bool {
	for _, f := range in.Findings["D02"] {
		if f.Members[0] != m.Label() || f.Evidence[0].Page == nil {
			continue
		}
		p, err := m.DB.Handle.Page(*f.Evidence[0].Page)
		if err != nil || strings.HasPrefix(p.Type, "unknown") {
			return false
		}
	}
	return true
}

// savedSnapshot tells whether both meta pages are as bbolt writes them into a copy: equal but for their transaction
// IDs, which follow each other (go.etcd.io/bbolt Tx.WriteTo, all versions).
func savedSnapshot(m *evidence.Member) bool {
	if m.DB == nil || m.DB.Handle == nil {
		return false
	}
	p := m.DB.Handle.Metas()
	return len(p) == 2 && p[0].Valid && p[1].Valid && p[0].Root == p[1].Root && p[0].Freelist == p[1].Freelist &&
		p[0].HighWater == p[1].HighWater && p[0].Txid == p[1].Txid+1
}

var bboltFreelist2017 = Cause{
	ID: "bbolt-freelist-defects-2017", Title: "the freelist that the meta page names is no sound freelist",
	Doc: `The library of 3.0 to 3.1.10 and 3.2.0 to 3.2.9 miscounted freelists of more than 65535 pages and could overwrite the freelist page while a
snapshot was read. From 3.3 on a server stores no freelist at all.
The damage is proven. On data of 3.3 and later the cause is another one: a foreign tool, or damage by storage.`,
	Affected: []string{"3.0.0 - 3.1.10", "3.2.0 - 3.2.9"},
	FixedIn:  []string{"3.1.11", "3.2.10"},
	Refs: []string{"https://github.com/etcd-io/etcd/pull/8813", "https://github.com/etcd-io/bbolt/issues/29",
		"https://github.com/etcd-io/bbolt/pull/66"},
	LookAlikes: "a copy of a running member",
	Recovery: "the freelist is not needed: open a copy without it and let the library rebuild it from what is " +
		"reachable, then defragment",
	Loss: "none by the freelist itself; pages that were handed out twice are overwritten",
	Match: func(in *Input) *Match {
		m := byField(in, "a sound freelist at that page in another copy", "D02", string(dumpdb.DamageFreelist))
		if m == nil {
			return nil
		}
		for _, label := range m.Members {
			if v := in.member(label).Version.Text; v != "3.0.x" && v != "3.1.x" && v != "3.2.x" {
				m.Certainty = Hint
			}
		}
		return m
	},
}

var partialWriteTxn = Cause{
	ID: "partial-write-txn", Title: "a transaction that failed in the middle was stored in part",
	Doc: `When a write transaction failed half way, the server closed it before it panicked, and the backend could commit in between. The member then
holds the first operations of the transaction and not the rest, while its consistent index has passed the entry.
Strong: everything wrong with the member is transactions of which only the first records are there, each with a restart of the member behind it.`,
	Affected: []string{"3.5.5 - 3.5.16"},
	FixedIn:  []string{"3.5.17", "3.6.0"},
	Refs: append(refs("etcd-io/etcd", 18679, 14110), "https://github.com/etcd-io/etcd/pull/18799",
		"https://github.com/etcd-io/etcd/pull/14149"),
	LookAlikes: "records removed by a compaction (left out here); another branch taken because of an earlier " +
		"difference (other records, not fewer)",
	Recovery: "reseed the member from one that holds the whole transaction; upgrade",
	Loss:     "the rest of that transaction on the member",
	Match:    matchPartialTxn,
}

func matchPartialTxn(in *Input) *Match {
	if in.Replay == nil {
		return nil
	}
	m := &Match{Certainty: Strong, Because: []string{}, RefutedBy: "a member without a panic at that entry; another " +
		"member with the same part of the transaction"}
	for i, r := range in.Replay.Members {
		if !r.Checked || r.FirstBad() == nil || !in.Members[i].Version.MayFollow(release.PartialTxn) ||
			r.Counts[replay.Missing]+len(r.Extra)+len(r.Reruns) > 0 || !onlyPartial(in, i) {
			continue
		}
		m.Members, m.Because = append(m.Members, in.Members[i].Label()),
			append(m.Because, idsOf(in, in.Members[i].Label(), "K03")...)
	}
	if len(m.Because) == 0 {
		return nil
	}
	return m
}

// onlyPartial tells whether everything wrong with a member is parts of transactions, each followed by a restart.
func onlyPartial(in *Input, pos int) bool {
	starts := in.Replay.Survey.Starts[in.Members[pos].MemberID]
	for _, e := range in.Replay.Events {
		o := e.Outcomes[pos]
		if o.State != replay.Contradicted {
			continue
		}
		if !o.Partial || !slices.ContainsFunc(starts, func(s replay.Start) bool { return s.Index > e.Index }) {
			return false
		}
	}
	return true
}

var defragOrphanMerged = Cause{
	ID: "defrag-orphan-merged", Title: "a left-over file of a defragmentation was used again, and old rows came back",
	Doc: `Up to 3.2.28, 3.3.18 and 3.4.3 a defragmentation wrote to db.tmp, whatever was in it. When an earlier one had been killed before its rename, its
file still held the rows of that time, and the next defragmentation added to it: deleted leases, users, roles, members and alarms reappear, and
superseded revisions stand below a compaction that is finished.
Strong by the superseded revisions alone; proven when rows whose removal is in the log are there as well.`,
	Affected:   []string{"3.0, 3.1", "3.2.0 - 3.2.28", "3.3.0 - 3.3.18", "3.4.0 - 3.4.3"},
	FixedIn:    []string{"3.2.29", "3.3.19", "3.4.4", "3.5.0"},
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/11613"},
	LookAlikes: "a compaction that was interrupted (finished is below scheduled); a tombstone exactly at the compact revision",
	Recovery:   "reseed the member; on a single member compact again and delete what came back through the API",
	Loss: "a lease that came back deletes its keys on that member when it expires; a user that came back has " +
		"its rights again",
	Match: matchDefragOrphan,
}

func matchDefragOrphan(in *Input) *Match {
	m := &Match{Certainty: Strong, Because: []string{}, RefutedBy: "the same superseded records on a member that " +
		"never defragmented"}
	for _, f := range in.Findings["D07"] {
		x := in.member(f.Members[0])
		if x == nil || x.Version.Follows(release.DefragOwnFile) || len(in.Members) > 1 &&
			len(in.Findings["D07"]) == len(in.Members) {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()), append(m.Because, f.ID)
		if cameBack(in, x) {
			m.Certainty = Proof
			m.Because = append(m.Because, idsOf(in, x.Label(), "K03")...)
		}
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

// cameBack tells whether a row is there that the log says is gone.
func cameBack(in *Input, m *evidence.Member) bool {
	if in.Replay == nil {
		return false
	}
	for i, r := range in.Replay.Members {
		if in.Members[i] == m && slices.ContainsFunc(r.StateDiffs,
			func(d replay.StateDiff) bool { return d.Expected == "absent" }) {
			return true
		}
	}
	return false
}
