package dumplog

import "slices"

// received cuts the effective log where the member received a snapshot that its log cannot contain. Raft then drops the
// entries that the member held (raft, log.go, restore). Those that it knew to be committed are in the snapshot. Of the
// others nothing is known: a leader that fell has entries at its end that never were committed, and may learn of its
// successors by a snapshot. The first entry after a received snapshot has a higher index: where it has not, the record
// is the member's own, in a log that was renumbered, or was altered.
func (o *order) received(v *event, next uint64) {
	known := max(o.commit, v.commit)
	if v.snap.ConfState == nil { // up to 3.4 the HardState of the snapshot may come before its record
		known = max(o.within, v.within, o.forced)
	}
	if known == 0 || known >= o.last || v.snap.Index <= known || len(o.sum.Damage) > 0 ||
		len(o.sum.Terms) == 0 || 0 < next && next <= v.snap.Index {
		return
	}
	if v.snap.Index <= o.last && o.sum.termOf(v.snap.Index) == v.snap.Term {
		return // the log holds that entry and continues
	}
	o.cut(Overwrite{Pos: v.pos, Term: v.snap.Term, Index: known + 1, Commit: known})
	o.last = known
}

// nextEntry is the index of the first entry after an event of a segment, 0 if the segment holds none.
func nextEntry(after []event) uint64 {
	i := slices.IndexFunc(after, func(v event) bool { return v.kind == eventRun })
	if i < 0 {
		return 0
	}
	return after[i].first
}
