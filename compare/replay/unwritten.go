package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Unwritten reports whether a backup is from before the restore that the log begins with, although it lists the members
// of this cluster. Its revision is too low for its index: every entry writes one revision at most, so the data dirs
// show how low it can have been there, which is atLeast. If they also show when the log began, hardly an entry of the
// log is found in it. If the first part of the log is purged, the backup shows in another way that its index counts
// another log.
func (r *Result) Unwritten(pos int) (atLeast int64, is bool) {
	x, w := r.Members[pos], r.writersOf(pos)
	if x.Member.ClusterID != 0 || w == nil {
		return 0, false
	}
	fromStart := w.first == 1 && w.total > 0 && restored(r)
	if !fromStart && !r.countsAnotherLog(x.Member) {
		return 0, false
	}
	rev, before := x.Member.DB.KV.LastRev.Main, fromStart
	for i, o := range r.Members {
		ow := r.writersOf(i)
		if o.Member.ClusterID == 0 || ow == nil || fromStart && ow.first != 1 {
			continue
		}
		unread, ok := unreadBetween(w, ow)
		if !ok {
			continue
		}
		low := o.lowestRevision(ow, w.total) - unread
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

// unreadBetween returns how many entries after the applied index of a backup are purged from the log in which a data
// dir's writers were counted. It is false if the two count from different entries.
func unreadBetween(backup, dir *writers) (n int64, ok bool) {
	if backup.first == dir.first {
		return 0, true
	}
	if backup.last != 0 || dir.first <= backup.until {
		return 0, false
	}
	return int64(dir.first - 1 - backup.until), true //nolint:gosec // below an index of the log
}

// countsAnotherLog reports whether the applied index of a backup is that of another log: the log's entry there has
// another term, or the backup lists a member that this cluster, which has applied more, neither has nor has removed.
func (r *Result) countsAnotherLog(backup *evidence.Member) bool {
	meta, index := &backup.DB.Meta, backup.ConsistentIndex()
	var terms, otherTerms, later int
	unknown := slices.Clone(backup.Membership.Bucket)
	for _, x := range r.Members {
		m := x.Member
		if m.ClusterID == 0 {
			continue
		}
		if t := m.WAL.TermAt(index); t != 0 && meta.Term != nil && !backup.Version.Has(release.TermInMeta).Excluded() {
			terms++
			if t != *meta.Term {
				otherTerms++
			}
		}
		if m.HasDB() && m.AppliedMin >= backup.AppliedMax {
			later++
		}
		unknown = slices.DeleteFunc(unknown,
			func(id dumplog.ID) bool { return id == m.MemberID || m.Membership.Knows(id) })
	}
	return otherTerms > 0 && otherTerms == terms || later > 0 && len(unknown) > 0
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
