package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// belowAgainstLog are the differences at the compact revision that a sound log shows, on the member itself or on
// another one that holds the same record.
func (in *Input) belowAgainstLog(pos int) []replay.BelowDiff {
	rows := in.ownBelow(pos)
	for _, d := range in.wrongAlike(pos) {
		if !in.doubtedBelow(&d) {
			rows = append(rows, d.BelowDiff)
		}
	}
	return rows
}

// belowAlike is a difference of a member at its compact revision, with all members that hold the same record.
type belowAlike struct {
	replay.BelowDiff
	holds []int
}

// wrongAlike are records of other members that the log shows to be wrong, and that a member holds alike: its own log
// may not reach back to their entries.
func (in *Input) wrongAlike(pos int) (out []belowAlike) {
	rp := in.Replay
	if rp == nil || pos >= len(rp.Members) || len(rp.LogDiffs)+len(rp.SameTerm) > 0 {
		return nil
	}
	seen := map[string]bool{}
	for i := range rp.Members[pos].Below {
		seen[rp.Members[pos].Below[i].Key] = true
	}
	for other := range rp.Members {
		if other == pos || len(rp.Members[other].Below) == 0 {
			continue
		}
		for _, d := range in.ownBelow(other) {
			if seen[d.Key] || d.OfRevision() || d.Rev == 0 || d.Wrote.Main != d.Rev {
				continue
			}
			if holds := in.holdAlike(other, &d); slices.Contains(holds, pos) {
				seen[d.Key] = true
				out = append(out, belowAlike{d, holds})
			}
		}
	}
	return out
}

// holdAlike are the members that hold the same wrong record as a member.
func (in *Input) holdAlike(pos int, d *replay.BelowDiff) (holds []int) {
	if d.Rev == 0 { // that others lack the key, too, shows nothing
		return []int{pos}
	}
	own := in.recordOf(pos, d.Key, d.Rev)
	for i := range in.Members {
		if c := in.recordOf(i, d.Key, d.Rev); i == pos || c != nil && sameCell(c, own) {
			holds = append(holds, i)
		}
	}
	return holds
}

// doubtedBelow reports whether more databases hold the record alike than logs hold the entry that says otherwise: then
// the entry may have been altered instead.
func (in *Input) doubtedBelow(d *belowAlike) bool {
	return len(d.holds) > max(1, len(in.logsWith(d.Index)))
}

// logsWith are the members whose logs hold an entry.
func (in *Input) logsWith(index uint64) (at []int) {
	for i, m := range in.Members {
		if m.HasLog() && m.WAL.Holds(index) {
			at = append(at, i)
		}
	}
	return at
}

// recordOf reads the record of a key at a revision of a member, nil if there is none or it cannot be read.
func (in *Input) recordOf(pos int, key string, main int64) (cell *diff.RecordCell) {
	m := in.Members[pos]
	if !m.HasDB() {
		return nil
	}
	for rec, err := range m.DB.Handle.Query(in.Context(), dumpdb.Query{Key: []byte(key), FromRev: main, ToRev: main}) {
		if err != nil || rec.Err != nil {
			return nil
		}
		cell = diff.CellOf(m, &rec)
	}
	return cell
}

// ownBelow are the differences at the compact revision between a member and a sound log. A log of which other entries
// were altered proves nothing alone against a member whose own log does not hold the entry.
func (in *Input) ownBelow(pos int) []replay.BelowDiff {
	if in.Replay == nil || pos >= len(in.Replay.Members) {
		return nil
	}
	var as []altered
	own := &in.Members[pos].WAL
	return slices.DeleteFunc(slices.Clone(in.Replay.Members[pos].Below), func(d replay.BelowDiff) bool {
		if own.Holds(d.Index) {
			return false
		}
		if as == nil {
			as = in.alteredLogs().find()
		}
		held := false
		for i, m := range in.Members {
			if m.HasLog() && m.WAL.Holds(d.Index) {
				if held = true; !isOdd(as, i) {
					return false
				}
			}
		}
		return held
	})
}

// isOdd reports whether entries of a member's log were altered after they were applied.
func isOdd(as []altered, pos int) bool {
	return slices.ContainsFunc(as, func(a altered) bool {
		return a.why != "" && !a.believes && slices.Contains(a.odd, pos)
	})
}

// belowFinding: the records that the log requires at the compact revision are not those of the database.
func (in *Input) belowFinding(pos int, rows []replay.BelowDiff) Finding {
	m, r := in.Members[pos], in.Replay.Members[pos]
	n := r.BelowCount - len(r.Below) + len(rows)
	why := fmt.Sprintf("the log up to entry %d gives other keys than the database holds at revision %d, from which on "+
		"it has its whole history", r.BaseIndex, r.BaseRevision)
	if len(r.Below) == 0 {
		why = "it holds records that the log shows to be wrong on another member, which has the same"
	}
	f := Finding{Kind: KindBelowCompactionAgainstLog, Severity: Critical, Members: []string{m.Label()},
		Class: ClassDataDivergence,
		At:    At{Index: rows[0].Index},
		More:  n - len(rows),
		Title: fmt.Sprintf("%s's database disagrees with the log at or below its compact revision in %s",
			m.Label(), plural.Of(n, "place", "places")),
		Explanation: why}
	for i := range rows {
		d := &rows[i]
		in.add(&f, func() Evidence {
			ev := in.inLog(Evidence{Field: fmt.Sprintf("entry %d", d.Index), Observed: d.Observed,
				Expected: d.Expected}, pos, d.Index)
			ev.File, ev.Offset, ev.Bucket = m.DB.File, nil, "key"
			if d.OfRevision() {
				ev.Field = fmt.Sprintf("revision after entry %d", d.Index)
			} else {
				ev.Key = Bytes(d.Key)
			}
			return ev
		})
	}
	return f
}
