package replay

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// OtherLog says why the index of a backup counts another log than that of the data dirs.
type OtherLog struct {
	// AtLeast is the revision that this log had written at the index, or more. It is 0 if the revision of the backup is
	// possible there.
	AtLeast int64
	// Differences counts the places in which the backup differs from what this log wrote up to the index.
	Differences int
}

// String says it in a few words.
func (o *OtherLog) String() string {
	if o.AtLeast > 0 {
		return fmt.Sprintf("at its index this log had written revision %d or more", o.AtLeast)
	}
	return fmt.Sprintf("it holds hardly anything that this log wrote up to its index (differences: %d)", o.Differences)
}

// Unwritten returns why a backup is from before the restore that the log begins with, although it lists the members of
// this cluster; nil if that is not known. Its revision is too low for its index: every entry writes one revision at
// most, so the data dirs show how low it can have been there. If they also show when the log began, hardly an entry of
// the log is found in it; then even a possible revision will do if none is found, and records that no entry wrote. If
// the first part of the log is purged, the backup shows in another way that its index counts another log.
func (r *Result) Unwritten(pos int) *OtherLog {
	x, w := r.Members[pos], r.writersOf(pos)
	if x.Member.HasWAL() || w == nil {
		return nil
	}
	fromStart := w.first == 1 && w.total > 0 && restored(r)
	if !fromStart && !r.otherTerm(x.Member) && !r.unknownMember(x.Member) && !x.nothingFound() {
		return nil
	}
	rev, before, atLeast, dirs := x.Member.DB.KV.LastRev.Main, fromStart, int64(0), 0
	for i, o := range r.Members {
		ow := r.writersOf(i)
		if !o.Member.HasWAL() || ow == nil {
			continue
		}
		if dirs++; ow.until < w.until || fromStart && ow.first != 1 {
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
	switch {
	case rev <= 1: // it holds no record, so nothing says of which log it is
	case rev < atLeast && 2*found < of:
		return &OtherLog{AtLeast: atLeast, Differences: x.differences()}
	case dirs == 0 && x.nothingFound(), fromStart && (x.hardlyFound() || x.allDiffers() && r.otherTerm(x.Member)):
		return &OtherLog{Differences: x.differences()}
	}
	return nil
}

// differences counts the places in which a database differs from what the log wrote up to its index, found those in
// which it is as the log says.
func (x *MemberResult) differences() int {
	return x.BelowCount + len(x.Extra) + x.Counts[Contradicted] + x.Counts[Missing]
}

func (x *MemberResult) found() int { return x.Counts[Applied] + x.belowSame }

// allDiffers reports whether a database differs from the log, and nothing in it is as the log says.
func (x *MemberResult) allDiffers() bool { return x.found() == 0 && x.differences() > 0 }

// manyDifferences is from how many places on a database is of another log, if nothing in it is as the log says; else
// from so many times as many.
const manyDifferences = 4

// hardlyFound reports whether a database differs from the log nearly everywhere, and holds records that no entry wrote.
func (x *MemberResult) hardlyFound() bool {
	return x.differences() >= manyDifferences*max(2*x.found(), 1) && len(x.Extra)+x.Counts[Contradicted] > 0
}

// nothingFound is hardlyFound for a database in which nothing is as the log says.
func (x *MemberResult) nothingFound() bool { return x.allDiffers() && x.hardlyFound() }

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

// otherTerm reports whether the log's entry at the applied index of a backup has another term than the backup: it has
// applied another entry.
func (r *Result) otherTerm(backup *evidence.Member) bool {
	if backup.DB.Meta.Term == nil || backup.Version.Has(release.TermInMeta).Excluded() {
		return false
	}
	differs := false
	for _, x := range r.Members {
		if !x.Member.HasWAL() {
			continue
		}
		switch x.Member.WAL.TermAt(backup.ConsistentIndex()) {
		case 0:
		case *backup.DB.Meta.Term:
			return false
		default:
			differs = true
		}
	}
	return differs
}

// unknownMember reports whether a backup lists a member that this cluster, which has applied more, neither has nor has
// removed.
func (r *Result) unknownMember(backup *evidence.Member) bool {
	unknown, later := slices.Clone(backup.Membership.Bucket), false
	for _, x := range r.Members {
		m := x.Member
		if !m.HasWAL() {
			continue
		}
		later = later || m.HasDB() && m.AppliedMin >= backup.AppliedMax
		unknown = slices.DeleteFunc(unknown,
			func(id dumplog.ID) bool { return id == m.MemberID || m.Membership.Knows(id) })
	}
	return later && len(unknown) > 0
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
