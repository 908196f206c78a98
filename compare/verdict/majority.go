package verdict

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// majority counts where a member differs from a majority that agrees.
type majority struct{ *ranking }

func (rk *ranking) majority() majority { return majority{rk} }

// countAgainst counts for each member the differing keys in which more than half of the compared members agree with
// each other and not with it. Keys that the replay has judged are left out. These are keys with an outcome that it
// blames on a member, and keys whose record was written by a replayed entry: its revision may have moved because of
// another entry. Where the row of every member of the majority is shown to be wrong, it says nothing either. The rows
// that the replay does not judge are listed first of all; they are bounded, and so is the count.
func (rk majority) countAgainst(list []standing) {
	if rk.Diff == nil {
		return
	}
	key := rk.Diff.Find("key")
	if key == nil {
		return
	}
	told, older := rk.decidedByLog(), rk.Replay.OlderCopies()
	for i := range key.Rows {
		row := &key.Rows[i]
		if told[string(row.Key)] || rk.Diff.Judged(row) {
			continue
		}
		most, takers := rk.largestGroup(row, older)
		if 2*len(most) <= takers || rk.shownWrong(most, row) {
			continue
		}
		for k := range list {
			if pos := list[k].pos; rk.Diff.TookPart("key", pos) && !sameCell(row.Cells[pos], row.Cells[most[0]]) {
				list[k].minority++
			}
		}
	}
}

// shownWrong reports whether findings show that a row is wrong on each of these members.
func (rk majority) shownWrong(members []int, row *diff.Row) bool {
	for _, pos := range members {
		label := rk.Members[pos].Label()
		if rk.garbled(pos, row) {
			continue
		}
		if !slices.ContainsFunc(rk.Findings, func(f check.Finding) bool {
			return !f.Undecided && f.Severity.Rank() >= check.Error.Rank() && slices.Contains(f.Members, label) &&
				slices.ContainsFunc(f.Evidence, func(e check.Evidence) bool {
					return e.Member == label && string(e.Key) == string(row.Key)
				})
		}) {
			return false
		}
	}
	return true
}

// garbled reports whether a member has a record that does not decode, or with a field that no release writes, where
// others have that of the row.
func (rk majority) garbled(pos int, row *diff.Row) bool {
	m := rk.Members[pos]
	return m.HasDB() && m.DB.KV != nil && slices.ContainsFunc(m.DB.KV.Violations, func(v dumpdb.Violation) bool {
		return (v.Rule == dumpdb.RuleUndecodable || v.Rule == dumpdb.RuleUnknownField) &&
			slices.ContainsFunc(row.Cells, func(c *diff.Cell) bool { return c != nil && c.Mod == v.Main })
	})
}

// countOdd counts for each member the findings in which it differs from a majority that agrees, where nothing shows who
// is wrong.
func (rk majority) countOdd(list []standing) {
	for i := range rk.Findings {
		f := &rk.Findings[i]
		if !f.Undecided || f.Severity.Rank() < check.Warning.Rank() {
			continue
		}
		for k := range list {
			switch {
			case !slices.Contains(f.Odd, rk.Members[list[k].pos].Label()):
			case f.Severity == check.Warning:
				list[k].odd++
			default:
				list[k].minority++
			}
		}
	}
}

// decidedByLog are the keys of entries that ended differently on the members according to the replay.
func (rk majority) decidedByLog() map[string]bool {
	told := map[string]bool{}
	if rk.Replay == nil {
		return told
	}
	for _, e := range rk.Replay.Events {
		for _, k := range e.Keys {
			told[k] = true
		}
	}
	return told
}

// largestGroup returns the members that hold the row alike, of the largest such group, and how many were compared.
// Older copies of a data dir have no vote.
func (rk majority) largestGroup(row *diff.Row, older map[int]int) (most []int, takers int) {
	votes := func(i int) bool {
		_, copied := older[i]
		return !copied && rk.Diff.TookPart("key", i)
	}
	for i := range row.Cells {
		if !votes(i) {
			continue
		}
		takers++
		var group []int
		for k := range row.Cells {
			if votes(k) && sameCell(row.Cells[i], row.Cells[k]) {
				group = append(group, k)
			}
		}
		if len(group) > len(most) {
			most = group
		}
	}
	return most, takers
}

func sameCell(a, b *diff.Cell) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Create == b.Create && a.Mod == b.Mod && a.Sub == b.Sub && a.Version == b.Version && a.Lease == b.Lease &&
		a.ValueLen == b.ValueLen && a.ValueDigest == b.ValueDigest
}
