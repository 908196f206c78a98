package verdict

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// undecided says what the best members hold differently although nothing shows which of them is right, and what would
// show it; "" where they do not differ so.
func (rk *ranking) undecided(best []int, kept int, records *keptRecords) string {
	if len(best) < 2 {
		return ""
	}
	what, rev := rk.keysOpen(best, records.decided)
	if what == "" && slices.Contains(best, kept) {
		what, rev = rk.recordsOpen(best, kept, records)
	}
	would := "a log that reaches further back, or an earlier backup"
	switch {
	case rev > 0:
		would = fmt.Sprintf("a log that reaches back to revision %d, or a backup that was taken soon after it", rev)
	case what == "":
		at := slices.IndexFunc(rk.Findings, func(f check.Finding) bool { return rk.leavesOpen(&f, best) })
		if at < 0 {
			return ""
		}
		what = rk.Findings[at].Title
	}
	return what + ", and nothing in the sources shows which of them is right. What would: " + would
}

// keysOpen counts the live keys that some members hold differently and nothing decides, and returns the lowest revision
// at which one of them was written.
func (rk *ranking) keysOpen(at []int, decided map[string]bool) (what string, rev int64) {
	n := 0
	for _, row := range rk.keysUntold(decided) {
		var first *diff.Cell
		taking := slices.DeleteFunc(slices.Clone(at), func(i int) bool { return !rk.Diff.TookPart("key", i) })
		if len(taking) > 0 {
			first = row.Cells[taking[0]]
		}
		if !slices.ContainsFunc(taking, func(i int) bool { return !sameCell(row.Cells[i], first) }) {
			continue
		}
		n++
		for _, i := range taking {
			if c := row.Cells[i]; c != nil && (rev == 0 || c.Mod < rev) {
				rev = c.Mod
			}
		}
	}
	if n == 0 {
		return "", 0
	}
	return plural.Of(n, "live key differs", "live keys differ") + " between them", rev
}

// recordsOpen is keysOpen for superseded records.
func (rk *ranking) recordsOpen(at []int, kept int, records *keptRecords) (what string, rev int64) {
	for i := range records.named {
		row, among := &records.named[i], rk.labels(at)
		if !slices.ContainsFunc(rk.holdOther(row, kept), func(o string) bool { return slices.Contains(among, o) }) {
			continue
		}
		return plural.Of(records.open, "superseded record differs", "superseded records differ") + " between members",
			row.Rev.Main
	}
	return "", 0
}

// leavesOpen reports whether a finding shows that some of these members hold rows of small buckets differently, and
// does not show which of them is right.
func (rk *ranking) leavesOpen(f *check.Finding, at []int) bool {
	if !f.Undecided && !f.Open || f.Severity.Rank() < check.Error.Rank() || f.Kind != check.KindRowsDiffer &&
		(f.Kind != check.KindAuthRevisionsDiffer || rk.logGivesAuth()) {
		return false
	}
	if len(f.Evidence) == 0 || rk.Diff == nil || rk.Diff.Find(f.Evidence[0].Bucket) == nil {
		return false
	}
	named := map[string]bool{}
	for i := range f.Evidence {
		named[string(f.Evidence[i].Key)] = true
	}
	return slices.ContainsFunc(rk.Diff.Find(f.Evidence[0].Bucket).Rows, func(row diff.Row) bool {
		taking := slices.DeleteFunc(slices.Clone(at), func(i int) bool {
			return !slices.Contains(rk.Diff.Compared(&row), i)
		})
		return named[string(row.Key)] && slices.ContainsFunc(taking, func(i int) bool {
			a, b := row.Cells[i], row.Cells[taking[0]]
			return (a == nil) != (b == nil) || a != nil && a.Text != b.Text
		})
	})
}

// logGivesAuth reports whether the log gives the auth revision of a member.
func (rk *ranking) logGivesAuth() bool {
	return rk.Replay != nil && slices.ContainsFunc(rk.Replay.Members,
		func(m *replay.MemberResult) bool { return m.Checked && m.GivesAuth() })
}

// openFor are the titles of the findings about small buckets that leave open whether a member holds the right rows.
func (rk *ranking) openFor(pos int) (why []string) {
	all := make([]int, len(rk.Members))
	for i := range all {
		all[i] = i
	}
	for i := range rk.Findings {
		f := &rk.Findings[i]
		switch {
		case !f.Open && !slices.Contains(f.Members, rk.Members[pos].Label()), !rk.leavesOpen(f, all):
		case f.Undecided:
			why = append(why, f.Title+": which member is right is not proven")
		default:
			why = append(why, f.Title+": of some of them, which member is right is not proven")
		}
	}
	return why
}
