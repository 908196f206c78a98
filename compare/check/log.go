package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// tornKinds are an end of the last segment that differs from what was written. The server cuts off what looks torn and
// refuses everything else.
var tornKinds = []dumplog.DamageKind{dumplog.DamageTornTail, dumplog.DamageTail}

// sequenceKinds are damage to the sequence of segments rather than to bytes in one.
var sequenceKinds = []dumplog.DamageKind{dumplog.DamageMissingSegment, dumplog.DamageUnreadable, dumplog.DamageMixed,
	dumplog.DamageIndexGap, dumplog.DamageName}

// tailKinds are reported by another check: R03 reports a log that ends too early.
var tailKinds = []dumplog.DamageKind{dumplog.DamageLostTail}

var walRecords = described(Check{
	ID:    W01,
	Needs: NeedLog,
	Run:   runWALRecords,
})

func runWALRecords(in *Input) Result {
	r := walDamage(in.Members, Critical, func(k dumplog.DamageKind) bool {
		return !slices.Contains(tornKinds, k) && !slices.Contains(sequenceKinds, k) && !slices.Contains(tailKinds, k)
	})
	if in.Replay == nil {
		return r
	}
	fs := r.Findings
	decoding := func(d *dumplog.DamageError) Sources { return decodingSources(in, d) }
	for i, m := range in.Members {
		fs = append(fs, placesOfLog(decoding, Critical, m, in.Replay.UndecodableDamage(i))...)
	}
	return outcome(fs, in.Members.unreadableParts("wal"))
}

var walTail = described(Check{
	ID:    W02,
	Needs: NeedLog,
	Run: func(in *Input) Result {
		return walDamage(in.Members, Error, func(k dumplog.DamageKind) bool { return slices.Contains(tornKinds, k) })
	},
})

var walSequence = described(Check{
	ID:    W03,
	Needs: NeedLog,
	Run:   runWALSequence,
})

func runWALSequence(in *Input) Result {
	r := walDamage(in.Members, Critical, func(k dumplog.DamageKind) bool { return slices.Contains(sequenceKinds, k) })
	fs := r.Findings
	for _, m := range in.Members {
		if d := in.provenance().missingEnd(m); d != nil {
			fs = append(fs, damageFinding(in.Members, Critical, m, d))
		}
	}
	return outcome(fs, in.Members.unreadableParts("wal"))
}

// missingEnd recognises a log that lost its last segments: the last one that exists was closed, and the member's own
// database or HardState is beyond it.
func (pv *provenance) missingEnd(m *evidence.Member) *dumplog.DamageError {
	if !m.HasWAL() || len(m.WAL.Summary.Segments) == 0 {
		return nil
	}
	s := &m.WAL.Summary
	last, beyond := s.Segments[len(s.Segments)-1], s.MaxCommit
	if m.HasDB() && !justInstalled(m) {
		beyond = max(beyond, m.ConsistentIndex())
	}
	told := slices.ContainsFunc(s.Damage, func(d *dumplog.DamageError) bool {
		return d.Segment == last.Name &&
			d.Kind != dumplog.DamageLostTail
	})
	if told || beyond <= m.LastIndex() || !s.LastClosed(pv.Members.logs().segmentSize(m)) || pv.tornCopy(m) != nil {
		return nil
	}
	return &dumplog.DamageError{Pos: dumplog.Pos{Segment: last.Name, Offset: last.DataEnd},
		Kind: dumplog.DamageMissingSegment, LostFrom: m.LastIndex() + 1, LostTo: beyond,
		Server: "does not notice a missing last segment when it starts",
		Err: fmt.Errorf("the last segment has %s and was closed, so the server wrote on in the next one, "+
			"which is missing", plural.Size(last.Size))}
}

func walDamage(ss Sources, sev Severity, want func(dumplog.DamageKind) bool) Result {
	var fs []Finding
	for _, m := range ss {
		if !m.HasWAL() {
			continue
		}
		var ds []*dumplog.DamageError
		for _, d := range m.WAL.Summary.Damage {
			if want(d.Kind) {
				ds = append(ds, d)
			}
		}
		fs = append(fs, placesOfLog(func(*dumplog.DamageError) Sources { return ss }, sev, m, ds)...)
	}
	return outcome(fs, ss.unreadableParts("wal"))
}

// decodingSources are the sources without those in whose logs the entry of a damaged place does not decode.
func decodingSources(in *Input, d *dumplog.DamageError) (out Sources) {
	for i, m := range in.Members {
		if !slices.ContainsFunc(in.Replay.Undecodable[i], func(u replay.Undecodable) bool {
			return u.Index == d.LostFrom
		}) {
			out = append(out, m)
		}
	}
	return out
}

// placesOfLog are the findings about damaged places of the member's log. from are the sources that may hold what is
// lost there.
func placesOfLog(from func(*dumplog.DamageError) Sources, sev Severity, m *evidence.Member,
	ds []*dumplog.DamageError) []Finding {
	return placeFindings(ds, func(d *dumplog.DamageError) string { return string(d.Kind) },
		func(d *dumplog.DamageError) Finding { return damageFinding(from(d), sev, m, d) }, logRanges)
}

func damageFinding(ss Sources, sev Severity, m *evidence.Member, d *dumplog.DamageError) Finding {
	f := Finding{Kind: KindLogDamaged, Facts: Facts{LogDamage: d.Kind}, Severity: sev, Class: ClassWALDamage,
		Members: []string{m.Label()},
		At:      At{Index: d.LostFrom, Term: append(Sources{m}, ss...).logs().termAt(d.LostFrom)},
		Title:   fmt.Sprintf("%s: %s in WAL segment %s at offset %d", m.Label(), d.Kind, d.Segment, d.Offset)}
	f.Explanation = d.Error()
	switch {
	case d.LostFrom > 0 && d.LostTo >= d.LostFrom:
		f.Explanation += ". Lost: " + plural.Span(d.LostFrom, d.LostTo, "entry", "entries")
	case d.LostFrom > 0:
		f.Explanation += fmt.Sprintf(". Lost: entry %d and whatever followed", d.LostFrom)
	}
	if holders := ss.logs().holders(m, d.LostFrom, d.LostTo); holders != "" {
		f.Explanation += "; " + holders
	}
	if d.Server != "" {
		f.Explanation += ". What etcd does: " + d.Server
	}
	f.Evidence = []Evidence{{Member: m.Label(), File: d.Segment, Offset: Int64(d.Offset), Length: d.Len,
		Field:    string(d.Kind),
		Observed: d.Error(), Expected: expectedAt(d), Show: showLogAs(m, "--raw")}}
	return f
}

var snapFiles = described(Check{
	ID:  S01,
	Run: runSnapFiles,
})

func runSnapFiles(in *Input) Result {
	var fs []Finding
	seen := false
	for _, m := range in.Members {
		if !m.HasSnap() {
			continue
		}
		seen = true
		var damaged []*dumplog.SnapFile
		for _, s := range m.Snap.Files {
			// S04 lists a file that a killed server left empty or cut short, set aside or not.
			if s.Damage != nil && !m.AbandonedSnap(s) && !m.UnfinishedSnap(s) {
				damaged = append(damaged, s)
			}
		}
		fs = append(fs, placeFindings(damaged,
			func(s *dumplog.SnapFile) string { return fmt.Sprint(s.Damage.Kind, s.Broken) },
			func(s *dumplog.SnapFile) Finding { return snapFinding(m, s) }, snapRanges)...)
	}
	if !seen {
		return Result{Reason: cmp.Or(in.Members.unreadableParts("snap"), "no source has a snap folder")}
	}
	return outcome(fs, in.Members.unreadableParts("snap"))
}

// snapFinding is a damaged .snap file.
func snapFinding(m *evidence.Member, s *dumplog.SnapFile) Finding {
	sev := Error
	if s.Broken {
		sev = Warning
	}
	return Finding{Kind: KindSnapshotFileDamaged, Severity: sev, Class: ClassSnapshotDamage,
		Members: []string{m.Label()},
		At:      At{Term: s.NameTerm, Index: s.NameIndex},
		Title:   fmt.Sprintf("%s: snapshot file %s is damaged", m.Label(), s.File), Explanation: s.Damage.Error(),
		Evidence: []Evidence{{Member: m.Label(), File: s.File, Offset: Int64(s.Damage.Offset),
			Field: string(s.Damage.Kind), Observed: s.Damage.Error(),
			Expected: fmt.Sprintf("CRC %08x over the data, metadata %d/%d", s.StoredCRC, s.NameTerm, s.NameIndex),
			Show:     showLogAs(m, "--snaps")}}}
}

var snapNotAheadOfDB = described(Check{
	ID:    S02,
	Needs: NeedDB | NeedLog,
	Run:   runSnapNotAhead,
})

func runSnapNotAhead(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || !m.HasWAL() || m.DB.KVDamaged {
			continue
		}
		checked++
		newest := m.NewestRecord()
		if newest.Index == 0 || m.ConsistentIndex() >= newest.Index || hasSnapDB(m, newest.Index) ||
			startsBelow(m, newest.Index) || in.provenance().tornCopy(m) != nil {
			continue
		}
		if m.ConsistentIndex() == 0 && m.DB.KV != nil && m.DB.KV.Revisions > 0 {
			continue // its age is unknown: C02
		}
		f := Finding{Kind: KindGapOther, Severity: Critical, Members: []string{m.Label()},
			At: At{Index: m.ConsistentIndex() + 1, Term: in.Members.logs().termAt(m.ConsistentIndex() + 1)},
			Title: fmt.Sprintf("%s: the database (consistent index %d) is older than the raft snapshot at %d/%d",
				m.Label(), m.ConsistentIndex(), newest.Term, newest.Index),
			Evidence: []Evidence{olderThanRecord(m, newest),
				{Member: m.Label(), File: newest.Segment, Offset: Int64(newest.Offset), Field: "snapshot record",
					Observed: fmt.Sprintf("%d/%d", newest.Term, newest.Index), Show: showLogAs(m, "--raw")}}}
		judgeGap(in.Replay, &f, m, newest)
		in.Members.foreignDatabase(&f, m)
		fs = append(fs, f)
	}
	if checked == 0 {
		return Result{Reason: "no source has both a log and a sound database"}
	}
	return outcome(fs, "")
}

// olderThanRecord: the server commits its database before it writes a snapshot record.
func olderThanRecord(m *evidence.Member, newest dumplog.SnapshotRecord) Evidence {
	return Evidence{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"),
		Field: "consistent_index", Observed: fmt.Sprint(m.ConsistentIndex()),
		Expected: fmt.Sprintf("at least %d", newest.Index),
		Show:     showDB(m, "meta")}
}

// startsBelow reports whether the server starts from a snapshot below that index, because the file of it is gone, and
// its log holds every entry after the snapshot in use. It applies again what its database lacks.
func startsBelow(m *evidence.Member, index uint64) bool {
	if !m.HasSnap() || !m.Version.Has(release.SnapFileUnused).Excluded() || hasSnapFile(m, index) ||
		len(m.WAL.Summary.Damage) > 0 {
		return false
	}
	from, cannot := usedSnapshot(m)
	return cannot == "" && from <= m.ConsistentIndex()
}

func hasSnapDB(m *evidence.Member, index uint64) bool {
	return slices.ContainsFunc(m.Snap.SnapDBs, func(s dumplog.SnapDB) bool { return s.Index >= index })
}
