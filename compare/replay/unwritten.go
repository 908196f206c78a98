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
	// Contradicted is how many keys of the backup the log contradicts, if only that speaks against it, and no database
	// of a data dir shows which of them is right: the backup may also have been altered.
	Contradicted int
	// Term is that of this log's entry at the index, if only that speaks against the backup, which has another one, and
	// no database of a data dir shows of which log it is: its term may also have been altered. It is 0 otherwise.
	Term uint64
	// Inferred is true if no log at hand shows the restore.
	Inferred bool
	// Refused is true if the backup may also be of a member that refused the writes of this log: they carry an auth
	// revision, and the member may have had another one.
	Refused bool
}

// MayBeAltered reports whether the backup may be of this log and have been altered.
func (o *OtherLog) MayBeAltered() bool { return o.Contradicted > 0 || o.Term > 0 }

// String says it in a few words.
func (o *OtherLog) String() string {
	if o.Contradicted > 0 {
		return "this log wrote other keys up to its index, or it was altered"
	}
	if o.Term > 0 {
		return "the entry of this log at its index has another term, or it was altered"
	}
	if o.Refused {
		return "it lacks what this log wrote up to its index, or its member refused that"
	}
	if o.AtLeast > 0 {
		return fmt.Sprintf("at its index this log had written revision %d or more", o.AtLeast)
	}
	return "no entry of this log up to its index put what it holds in its newest revisions"
}

// Unwritten returns why a backup is from before the restore that the log begins with, although it lists the members of
// this cluster; nil if that is not known. Its revision is too low for its index: every entry writes one revision at
// most, so the data dirs show how low it can have been there. If they also show when the log began, hardly an entry of
// the log is found in it. If the first part of the log is purged, the backup shows in another way that its index counts
// another log. A revision that is possible will do if the backup holds nothing of the log.
// It will also do if the log contradicts the backup, or has another term at its index, and no database of a data dir
// shows which of them is right.
func (r *Result) Unwritten(pos int) *OtherLog {
	x, w := r.Members[pos], r.writersOf(pos)
	if x.Member.HasWAL() || w == nil || r.bootstrapped() {
		return nil
	}
	fromStart := w.first == 1 && w.total > 0 && restored(r)
	b := revisionBound{r: r, backup: w, fromStart: fromStart}
	if b.find(func(dir *writers) bool { return dir.until >= w.until }); b.dirs == 0 {
		b.find(func(*writers) bool { return true })
	}
	// Entries above the end of the logs may have made its newest puts, where no log shows a restore.
	within := restored(r) || x.Member.AppliedMin <= r.Last
	rev, nothing := x.Member.DB.KV.LastRev.Main, within && r.Survey.puts.noneOf(x.Member)
	b.findWritten(x.Member)
	sure := r.otherTerm(x.Member) > 0 || r.unknownMember(x.Member) || nothing ||
		within && r.Survey.puts.fewOfNewest(x.Member, 0)
	if fromStart {
		found, of := int64(x.Counts[Applied]), w.total
		if b.dirs > 0 && rev > b.began {
			of = max(x.Writes, 1)
		}
		sure = sure || 2*found < of || rev+farBelow <= b.atLeast && r.Survey.puts.fewOfNewest(x.Member, 1)
	} else {
		sure = sure || rev+farBelow <= b.atLeast
	}
	switch {
	case rev <= 1: // it holds no record, so nothing says of which log it is
	case rev < b.atLeast && sure:
		return r.otherLog(x.Member, b.atLeast)
	case nothing:
		return r.otherLog(x.Member, 0)
	case restored(r) && x.BelowCount > 0 && !r.hasDataDirDB(w.until):
		return &OtherLog{Contradicted: x.BelowCount}
	case restored(r) && r.otherTerm(x.Member) > 0 && !r.hasDataDirDB(w.until):
		return &OtherLog{Term: r.otherTerm(x.Member)}
	}
	return nil
}

func (r *Result) otherLog(backup *evidence.Member, atLeast int64) *OtherLog {
	o := &OtherLog{AtLeast: atLeast, Inferred: !restored(r)}
	o.Refused = o.Inferred && r.otherTerm(backup) == 0 && !r.unknownMember(backup) && r.Survey.puts != nil &&
		r.Survey.puts.mayRefuseAll(backup)
	return o
}

// hasDataDirDB reports whether the keys of any data dir show what the log had written at an index: they can be read,
// and no later part of the log is missing, after which alone they could be replayed.
func (r *Result) hasDataDirDB(index uint64) bool {
	return slices.ContainsFunc(r.Members, func(x *MemberResult) bool {
		return x.Member.HasWAL() && x.Member.HasDB() && x.Member.DB.KV != nil &&
			!slices.ContainsFunc(r.Gaps, func(g Gap) bool { return g.To >= index && g.From <= x.Member.AppliedMin })
	})
}

// farBelow is how many revisions a database cannot have lost without further traces.
const farBelow = 16

// bootstrapped reports whether a log begins with the bootstrap of the cluster, which then was not restored.
func (r *Result) bootstrapped() bool {
	return slices.ContainsFunc(r.Members, func(x *MemberResult) bool {
		return x.Member.HasWAL() && x.Member.WAL.Summary.Start == dumplog.StartBootstrap
	})
}

// revisionBound is how low a revision can have been at the index of a backup, and when the log began, as the data dirs
// show it: the lowest, since one may be wrong.
type revisionBound struct {
	r         *Result
	backup    *writers
	fromStart bool
	// dirs is how many of them show it.
	dirs           int
	atLeast, began int64
}

// find asks the data dirs that fit.
func (b *revisionBound) find(fits func(dir *writers) bool) {
	for i, x := range b.r.Members {
		w := b.r.writersOf(i)
		if !x.Member.HasWAL() || w == nil || !fits(w) || b.fromStart && w.first != 1 {
			continue
		}
		unread, ok := unreadBetween(b.backup, w)
		if !ok {
			continue
		}
		low := x.lowestRevision(w, b.backup.total) - unread - gaps(b.r.Gaps).between(b.backup.until, w.until)
		began := x.lowestRevision(w, 0) - gaps(b.r.Gaps).between(0, w.until)
		if b.dirs++; b.dirs == 1 {
			b.atLeast, b.began = low, began
		}
		b.atLeast, b.began = min(b.atLeast, low), min(b.began, began)
	}
}

// findWritten raises the bound to a revision that a data dir shows to have been written at the index of a backup.
func (b *revisionBound) findWritten(backup *evidence.Member) {
	for _, x := range b.r.Members {
		m := x.Member
		if m.HasWAL() && m.HasDB() && m.DB.KV != nil && !x.impossible() && m.AppliedMin >= backup.AppliedMax {
			at := b.r.Survey.puts.writtenUpTo(backup.AppliedMin, m, backup.DB.KV.LastRev.Main)
			b.atLeast = max(b.atLeast, at)
		}
	}
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

// otherTerm returns the term of the log's entry at the applied index of a backup if the backup has another one: it has
// applied another entry. It is 0 otherwise.
func (r *Result) otherTerm(backup *evidence.Member) (term uint64) {
	if backup.DB.Meta.Term == nil || backup.Version.Has(release.TermInMeta).Excluded() {
		return 0
	}
	for _, x := range r.Members {
		if !x.Member.HasWAL() {
			continue
		}
		switch t := x.Member.WAL.TermAt(backup.ConsistentIndex()); t {
		case 0:
		case *backup.DB.Meta.Term:
			return 0
		default:
			term = t
		}
	}
	return term
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
