package cause

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// pageKinds are the kinds of damage that contradict the page graph.
var pageKinds = []dumpdb.DamageKind{dumpdb.DamagePage, dumpdb.DamagePageID, dumpdb.DamageCycle, dumpdb.DamageDoubleUse,
	dumpdb.DamageKeyOrder, dumpdb.DamageOutOfFile, dumpdb.DamageEmpty}

var bucketNamesRevisions = described(Cause{
	ID: BucketNamesAreRevisions,
	Match: func(in *Input) *Match {
		m := byKind(in, "the same page in a copy of the stopped member", check.KindRootHoldsRevisions,
			check.KindPageReused)
		if m != nil {
			m.Certainty = Strong
		}
		return m
	},
})

var backupRacesRename = described(Cause{
	ID: BackupRacesRename,
	Match: func(in *Input) *Match {
		m := byDBDamage(in, "the same damage in the database that the backup was taken from", pageKinds...)
		if m == nil {
			return nil
		}
		out := &Match{Certainty: Strong, Because: []string{}, RefutedBy: m.RefutedBy}
		for _, label := range m.Members {
			if x := in.member(label); x != nil && x.DB.Trailer.State == "match" && savedSnapshot(x) &&
				pagesOfAFile(in, x) {
				out.Members, out.Because = append(out.Members, label),
					append(out.Because, idsOf(in, label, check.D02)...)
			}
		}
		if len(out.Members) == 0 {
			return nil
		}
		return out
	},
})

// pagesOfAFile reports whether every damaged page is still a page of a bbolt file, possibly of another one. Random
// bytes would be damage by storage.
func pagesOfAFile(in *Input, m *evidence.Member) bool {
	for _, f := range in.Findings[check.D02] {
		if f.Members[0] != m.Label() || f.Facts.Page == nil {
			continue
		}
		p, err := m.DB.Handle.Page(*f.Facts.Page)
		if err != nil || strings.HasPrefix(p.Type, "unknown") {
			return false
		}
	}
	return true
}

// savedSnapshot reports whether both meta pages are as bbolt writes them into a copy: equal except for their
// transaction IDs, which are consecutive (go.etcd.io/bbolt Tx.WriteTo, all versions).
func savedSnapshot(m *evidence.Member) bool {
	if m.DB == nil || m.DB.Handle == nil {
		return false
	}
	p := m.DB.Handle.Metas()
	return len(p) == 2 && p[0].Valid && p[1].Valid && p[0].Root == p[1].Root && p[0].Freelist == p[1].Freelist &&
		p[0].HighWater == p[1].HighWater && p[0].Txid == p[1].Txid+1
}

var bboltFreelist2017 = described(Cause{
	ID: BboltFreelistDefects2017,
	Match: func(in *Input) *Match {
		m := byDBDamage(in, "a sound freelist at that page in another copy", dumpdb.DamageFreelist)
		if m == nil {
			return nil
		}
		for _, label := range m.Members {
			if !mayAffect(BboltFreelistDefects2017, in.member(label)) {
				m.Certainty = Hint
			}
		}
		return m
	},
})

var partialWriteTxn = described(Cause{
	ID:    PartialWriteTxn,
	Match: matchPartialTxn,
})

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
			append(m.Because, idsOf(in, in.Members[i].Label(), check.K03)...)
	}
	if len(m.Because) == 0 {
		return nil
	}
	return m
}

// onlyPartial reports whether everything wrong with a member is parts of transactions, each followed by a restart.
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

var defragOrphanMerged = described(Cause{
	ID:    DefragOrphanMerged,
	Match: matchDefragOrphan,
})

func matchDefragOrphan(in *Input) *Match {
	m := &Match{Certainty: Strong, Because: []string{}, RefutedBy: "the same superseded records on a member that " +
		"never defragmented"}
	for _, f := range in.Findings[check.D07] {
		x := in.member(f.Members[0])
		if x == nil || x.Version.Follows(release.DefragOwnFile) || len(in.Members) > 1 &&
			len(in.Findings[check.D07]) == len(in.Members) {
			continue
		}
		m.Members, m.Because = append(m.Members, x.Label()), append(m.Because, f.ID)
		if cameBack(in, x) {
			m.Certainty = Proof
			m.Because = append(m.Because, idsOf(in, x.Label(), check.K03)...)
		}
	}
	if len(m.Members) == 0 {
		return nil
	}
	return m
}

// cameBack reports whether the database holds a row that the log has deleted.
func cameBack(in *Input, m *evidence.Member) bool {
	if in.Replay == nil {
		return false
	}
	for i, r := range in.Replay.Members {
		if in.Members[i] == m && slices.ContainsFunc(r.StateDiffs,
			func(d replay.StateDiff) bool { return d.Surplus }) {
			return true
		}
	}
	return false
}
