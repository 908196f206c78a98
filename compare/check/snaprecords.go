package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// recordFields are the fields of the evidence of W06.
var recordFields = map[Kind]string{
	KindRecordConfAltered:  "configuration of a snapshot record",
	KindRecordIndexAltered: "index of a snapshot record",
	KindSnapshotsOfOther:   "log and snap folder of two members",
}

var snapRecordsFit = described(Check{
	ID:    W06,
	Needs: NeedLog,
	Run:   runSnapRecordsFit,
})

func runSnapRecordsFit(in *Input) Result {
	var fs []Finding
	seen := false
	for _, m := range in.Members {
		if !m.HasWAL() {
			continue
		}
		if f := recordsGone(m); f != nil {
			fs = append(fs, *f)
		}
		if len(m.WAL.Summary.Snapshots) == 0 {
			continue
		}
		seen = true
		if f := recordConf(m); f != nil {
			fs = append(fs, *f)
		}
		if f := in.Members.recordWithoutFile(m); f != nil {
			fs = append(fs, *f)
		}
	}
	if !seen && len(fs) == 0 {
		return Result{Reason: "no log has a snapshot record"}
	}
	return outcome(fs, in.Members.unreadableParts("wal"))
}

// recordsGone: a log is created with the record of a snapshot at index 0, and a purge keeps the segment with the record
// of the snapshot that it goes by.
func recordsGone(m *evidence.Member) *Finding {
	s := &m.WAL.Summary
	if !m.HasLog() || s.Records[dumplog.RecordSnapshot] > 0 || len(s.Damage) > 0 {
		return nil
	}
	return &Finding{Kind: KindRecordsGone, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At:    At{Term: s.FirstTerm, Index: s.FirstIndex},
		Title: m.Label() + ": the log lacks every snapshot record",
		Explanation: "a server writes the first one when it creates the log, and a purge keeps the segment that has " +
			"the newest; something else than etcd removed the records. A server that starts on this log uses no " +
			".snap file",
		Evidence: []Evidence{{Member: m.Label(), Field: "snapshot record", Observed: "none",
			Expected: "one at index 0, or those of its snapshots", Show: showLogAs(m, "--raw")}}}
}

func recordFinding(m *evidence.Member, r *dumplog.SnapshotRecord, kind Kind, title, explanation, observed,
	expected string) *Finding {
	return &Finding{Kind: kind, Severity: Error, Class: ClassWALDamage, Members: []string{m.Label()},
		At: At{Term: r.Term, Index: r.Index}, Title: m.Label() + ": " + title,
		Explanation: explanation + ". The CRC of the record holds, so it was altered before it was written, or with " +
			"new CRCs",
		Evidence: []Evidence{{Member: m.Label(), File: r.Segment, Offset: Int64(r.Offset), Field: recordFields[kind],
			Observed: observed, Expected: expected,
			Show: showLogAs(m, "--raw")}}}
}

// recordConf finds the first record whose configuration differs from that of its file, or from the record before it
// although no change is in between.
func recordConf(m *evidence.Member) *Finding {
	var records []*dumplog.SnapshotRecord
	for i := range m.WAL.Summary.Snapshots {
		r := &m.WAL.Summary.Snapshots[i]
		if r.ConfState == nil || r.Index == 0 {
			continue
		}
		if f := snapFileAt(m, r.Index); f != nil && !sameConf(&f.ConfState, r.ConfState) {
			return recordFinding(m, r, KindRecordConfAltered,
				fmt.Sprintf("the snapshot record at index %d names another configuration than its file", r.Index),
				"log and file "+f.File+" were written together", confText(r.ConfState), confText(&f.ConfState))
		}
		records = append(records, r)
	}
	for i := 1; i < len(records); i++ {
		a, b := records[i-1], records[i]
		changed := slices.ContainsFunc(m.WAL.Conf,
			func(c evidence.ConfEntry) bool { return a.Index < c.Index && c.Index <= b.Index })
		if changed || sameConf(a.ConfState, b.ConfState) || !holdsAll(m, a.Index, b.Index) {
			continue
		}
		if i == 1 && len(records) > 2 && sameConf(b.ConfState, records[2].ConfState) {
			a, b = b, a // the next record agrees with the second of the two
		}
		return recordFinding(m, b, KindRecordConfAltered,
			fmt.Sprintf("the snapshot record at index %d names another configuration than the one at %d", b.Index,
				a.Index),
			"the log holds the entries between the two, and no conf change is among them", confText(b.ConfState),
			confText(a.ConfState))
	}
	return nil
}

// recordWithoutFile finds a record and a file that should belong together: neither has its counterpart, and no other
// record or file is between them. The files of records below the oldest file were purged, and so may be the records of
// files below the first entry. Segments of another member have the records of its snapshots, and missing segments have
// others.
func (ss Sources) recordWithoutFile(m *evidence.Member) *Finding {
	s := &m.WAL.Summary
	if !m.HasSnap() || slices.ContainsFunc(s.Damage, func(d *dumplog.DamageError) bool {
		return slices.Contains(sequenceKinds, d.Kind)
	}) {
		return nil
	}
	var files []uint64
	var orphans []*dumplog.SnapFile
	for _, f := range m.Snap.Files {
		if f.Damage != nil || f.Broken {
			return nil // a file that cannot be read may be the record's
		}
		files = append(files, f.Index)
		if s.SnapshotAt(f.Term, f.Index) == nil && f.Index+1 >= s.FirstIndex && f.Index <= s.LastIndex {
			orphans = append(orphans, f)
		}
	}
	for i := range s.Snapshots {
		r := &s.Snapshots[i]
		if f := snapFileAt(m, r.Index); len(files) == 0 || r.Index < slices.Min(files) || f != nil && f.Term == r.Term {
			continue
		}
		orphan := nextOrphan(r, orphans, files, s.Snapshots)
		if orphan == nil {
			continue
		}
		if o := ss.exchangedWith(m, r, orphan); o != nil {
			return snapshotsOfOther(m, o, r, orphan)
		}
		return recordFinding(m, r, KindRecordIndexAltered,
			fmt.Sprintf("the snapshot record at %d/%d has no file, and the file %s no record", r.Term, r.Index,
				orphan.File),
			"each is the counterpart of the other", fmt.Sprintf("%d/%d", r.Term, r.Index),
			fmt.Sprintf("%d/%d", orphan.Term, orphan.Index))
	}
	return nil
}

// exchangedWith returns another member that has the counterparts of both: the file of the record, without a record of
// its own, and the record of the file. nil if there is none.
func (ss Sources) exchangedWith(m *evidence.Member, r *dumplog.SnapshotRecord,
	orphan *dumplog.SnapFile) *evidence.Member {
	for _, o := range ss {
		if o == m || o.MemberID == m.MemberID || !o.HasWAL() || o.MixedLog() {
			continue
		}
		f := snapFileAt(o, r.Index)
		if f != nil && f.Term == r.Term && o.WAL.Summary.SnapshotAt(f.Term, f.Index) == nil &&
			o.WAL.Summary.SnapshotAt(orphan.Term, orphan.Index) != nil {
			return o
		}
	}
	return nil
}

func snapshotsOfOther(m, o *evidence.Member, r *dumplog.SnapshotRecord, orphan *dumplog.SnapFile) *Finding {
	f := recordFinding(m, r, KindSnapshotsOfOther, fmt.Sprintf("the snapshot files are not those of its log, but of "+
		"that of %s", o.Label()), "", fmt.Sprintf("a record at %d/%d without a file, and the file %s without a record",
		r.Term, r.Index, orphan.File), "files and records of the same snapshots")
	f.Class, f.Members = ClassMembership, []string{m.Label(), o.Label()}
	f.Explanation = fmt.Sprintf("the log of %s has the record of that file, and the snap folder of %s has the file of "+
		"this record, without a record either: WAL folders or snap folders of the two members were exchanged",
		o.Label(), o.Label())
	f.Remedy = []Remedy{{Text: "put the folders back, or copy them again, before either member is started"}}
	return f
}

// nextOrphan returns the newest file without a record that no other file or record separates from a record without a
// file, nil if there is none.
func nextOrphan(r *dumplog.SnapshotRecord, orphans []*dumplog.SnapFile, files []uint64,
	records []dumplog.SnapshotRecord) (found *dumplog.SnapFile) {
	for _, o := range orphans {
		lo, hi := min(r.Index, o.Index), max(r.Index, o.Index)
		between := func(index uint64) bool { return lo < index && index < hi }
		if !slices.ContainsFunc(files, between) &&
			!slices.ContainsFunc(records, func(s dumplog.SnapshotRecord) bool { return between(s.Index) }) &&
			(found == nil || o.Index > found.Index) {
			found = o
		}
	}
	return found
}

func snapFileAt(m *evidence.Member, index uint64) *dumplog.SnapFile {
	if !m.HasSnap() {
		return nil
	}
	for _, f := range m.Snap.Files {
		if f.Damage == nil && !f.Broken && f.Index == index {
			return f
		}
	}
	return nil
}

// holdsAll reports whether the log holds every entry in (from, to].
func holdsAll(m *evidence.Member, from, to uint64) bool {
	s := &m.WAL.Summary
	if s.FirstIndex == 0 || s.FirstIndex > from+1 || s.LastIndex < to ||
		slices.ContainsFunc(s.Jumps, func(j dumplog.Jump) bool { return j.From <= to && j.To > from }) {
		return false
	}
	return !slices.ContainsFunc(s.Damage, func(d *dumplog.DamageError) bool {
		return d.LostFrom > 0 && d.LostFrom <= to && (d.LostTo == 0 || d.LostTo > from)
	})
}

func sameConf(a, b *dumplog.ConfState) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := func(x, y []dumplog.ID) bool {
		return slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y)))
	}
	return same(a.Voters, b.Voters) && same(a.Learners, b.Learners) && same(a.VotersOutgoing, b.VotersOutgoing) &&
		same(a.LearnersNext, b.LearnersNext)
}

func confText(c *dumplog.ConfState) string {
	text := fmt.Sprintf("voters %v", hexes(c.Voters))
	if len(c.Learners) > 0 {
		text += fmt.Sprintf(", learners %v", hexes(c.Learners))
	}
	return text
}
