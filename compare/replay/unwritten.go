package replay

import "slices"

// Unwritten reports whether a backup is from before the restore that the log begins with, although it lists the members
// of this cluster. Its revision is too low for its index: every entry writes one revision at most, so the data dirs
// show how low it can have been there, which is atLeast, and when the log began. And hardly an entry of the log is
// found in it.
func (r *Result) Unwritten(pos int) (atLeast int64, is bool) {
	x, w := r.Members[pos], r.writersOf(pos)
	if x.Member.ClusterID != 0 || w == nil || w.first != 1 || w.total == 0 || !restored(r) {
		return 0, false
	}
	rev, before := x.Member.DB.KV.LastRev.Main, true
	for i, o := range r.Members {
		ow := r.writersOf(i)
		if o.Member.ClusterID == 0 || ow == nil || ow.first != 1 {
			continue
		}
		low := o.lowestRevision(ow, w.total)
		if atLeast == 0 || low < atLeast {
			atLeast = low
		}
		before = before && rev <= o.lowestRevision(ow, 0)
	}
	found, of := int64(x.Counts[Applied]), w.total
	if !before {
		of = max(x.Writes, 1)
	}
	return atLeast, rev < atLeast && 2*found < of
}

// lowestRevision is the lowest revision that a database can have had when so many entries from entry 1 on may have
// written to it.
func (x *MemberResult) lowestRevision(w *writers, writes int64) int64 {
	low := x.Member.DB.KV.LastRev.Main - max(w.total-writes, 0)
	if x.Checked {
		low = max(low, x.BaseRevision-max(x.baseWrites-writes, 0))
	}
	return low
}

// writersOf counts the entries that may have written to a database, nil without one that can be read.
func (r *Result) writersOf(pos int) *writers {
	m := r.Members[pos].Member
	if !m.HasDB() || m.DB.KV == nil || r.Survey == nil {
		return nil
	}
	at := slices.IndexFunc(r.Survey.writers, func(w *writers) bool { return w.appliedRange == appliedRangeOf(m) })
	if at < 0 {
		return nil
	}
	return r.Survey.writers[at]
}
