package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// belowAgainstLog are the differences at the compact revision that a sound log shows. A log of which other
// entries were altered proves nothing alone against a member whose own log does not hold the entry.
func (in *Input) belowAgainstLog(pos int) []replay.BelowDiff {
	if in.Replay == nil {
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
	f := Finding{Kind: KindBelowCompactionAgainstLog, Severity: Critical, Members: []string{m.Label()},
		Class: ClassDataDivergence,
		At:    At{Index: rows[0].Index},
		More:  n - len(rows),
		Title: fmt.Sprintf("%s's database disagrees with the log at or below its compact revision in %s",
			m.Label(), plural.Of(n, "place", "places")),
		Explanation: fmt.Sprintf("the log up to entry %d gives other keys than the database holds at revision %d, "+
			"from which on it has its whole history",
			r.BaseIndex, r.BaseRevision)}
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
