package check

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// tornKinds are an end of the last segment that is not what was written: the server cuts off what it takes for torn and
// refuses the rest.
var tornKinds = []dumplog.DamageKind{dumplog.DamageTornTail, dumplog.DamageTail}

// sequenceKinds are damage to the sequence of segments rather than to bytes in one.
var sequenceKinds = []dumplog.DamageKind{dumplog.DamageMissingSegment, dumplog.DamageUnreadable, dumplog.DamageMixed,
	dumplog.DamageIndexGap, dumplog.DamageName}

// tailKinds are told by another check: that the log ends too early is R03.
var tailKinds = []dumplog.DamageKind{dumplog.DamageLostTail}

var walRecords = Check{
	ID: "W01", Title: "every WAL record decodes, continues the CRC chain and fits its neighbours",
	Doc: `A WAL is a sequence of frames; the CRC of each record covers its data and all data before it. A record that does not fit was
changed after it was written. The reader goes on behind the damage and states the indexes that are lost. A snapshot record whose CRC holds names
the index and term of an entry of the log that was committed before, or a received snapshot behind which the log goes on.
Normal: zeros behind the last record of the last segment (preallocation), and an incomplete last record (see W02).`,
	Needs: NeedLog,
	Run: func(in *Input) Result {
		return in.walDamage(Critical, func(k dumplog.DamageKind) bool {
			return !slices.Contains(tornKinds, k) && !slices.Contains(sequenceKinds, k) &&
				!slices.Contains(tailKinds, k)
		})
	},
}

var walTail = Check{
	ID: "W02", Title: "the WAL ends with a complete record",
	Doc: `A crash can leave the last record of the last segment incomplete. Where a sector of it is all zeros or the file ends inside of it, etcd
cuts it off at the next start (and keeps the old segment as .broken); any other end that holds no record it refuses. If the entry was acknowledged,
this member then lacks something it has promised; other members still have it.
A single flipped bit in the last record is told by W01: no unfinished write looks like that.`,
	Needs: NeedLog,
	Run: func(in *Input) Result {
		return in.walDamage(Error, func(k dumplog.DamageKind) bool { return slices.Contains(tornKinds, k) })
	},
}

var walSequence = Check{
	ID: "W03", Title: "the segments of a WAL follow each other without a gap and belong to one member",
	Doc: `Segment files are numbered without a gap, carry the same member and cluster ID, and their entries continue. A server closes a full segment
by cutting it to its data and creates the next one with its full size, so the last segment is never a closed one: if it is, the segments
after it are missing.
Normal: missing segments at the front (the server purges them when a snapshot covers them), and a closed last segment where the server died
in the moment before it created the next one; then database and HardState do not reach beyond it.`,
	Needs: NeedLog,
	Run:   runWALSequence,
}

func runWALSequence(in *Input) Result {
	r := in.walDamage(Critical, func(k dumplog.DamageKind) bool { return slices.Contains(sequenceKinds, k) })
	fs := r.Findings
	for _, m := range in.Members {
		if d := in.missingEnd(m); d != nil {
			fs = append(fs, in.damageFinding(Critical, m, d))
		}
	}
	return outcome(fs, in.unreadableParts("wal"))
}

// missingEnd recognises a log that lost its last segments: the last one left was closed, and the member's own database
// or HardState goes on after it.
func (in *Input) missingEnd(m *evidence.Member) *dumplog.DamageError {
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
	if told || beyond <= m.LastIndex() || !s.LastClosed(in.segmentSize(m)) || in.tornCopy(m) != nil {
		return nil
	}
	return &dumplog.DamageError{Pos: dumplog.Pos{Segment: last.Name, Offset: last.DataEnd},
		Kind: dumplog.DamageMissingSegment, LostFrom: m.LastIndex() + 1, LostTo: beyond,
		Server: "does not notice a missing last segment when it starts",
		Err: fmt.Errorf("the last segment has %d bytes and was closed, so the server wrote on in the next one, "+
			"which is missing", last.Size)}
}

// segmentSize is the size with which the member's server creates segments: as its own log or, if that ends with a
// closed segment, the logs of the other members show.
func (in *Input) segmentSize(m *evidence.Member) int64 {
	size := int64(dumplog.SegmentLimit)
	for _, o := range in.Members {
		if o.HasWAL() && o.ClusterID == m.ClusterID && o.WAL.Summary.SegmentSize() > 0 {
			size = min(size, o.WAL.Summary.SegmentSize())
		}
	}
	segs := m.WAL.Summary.Segments
	for _, g := range segs[:len(segs)-1] {
		if g.Size < dumplog.SegmentLimit { // a closed segment is longer by a part of what was appended last
			size = min(size, g.Size-g.Size/8)
		}
	}
	return size
}

func (in *Input) walDamage(sev Severity, want func(dumplog.DamageKind) bool) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasWAL() {
			continue
		}
		var ds []*dumplog.DamageError
		for _, d := range m.WAL.Summary.Damage {
			if want(d.Kind) {
				ds = append(ds, d)
			}
		}
		fs = append(fs, placeFindings(ds, func(d *dumplog.DamageError) string { return string(d.Kind) },
			func(d *dumplog.DamageError) Finding { return in.damageFinding(sev, m, d) }, logRanges)...)
	}
	return outcome(fs, in.unreadableParts("wal"))
}

func (in *Input) damageFinding(sev Severity, m *evidence.Member, d *dumplog.DamageError) Finding {
	f := Finding{Severity: sev, Class: "wal-damage", Members: []string{m.Label()},
		At:    At{Index: d.LostFrom, Term: in.termAt(d.LostFrom)},
		Title: fmt.Sprintf("%s: %s in WAL segment %s at offset %d", m.Label(), d.Kind, d.Segment, d.Offset)}
	f.Explanation = d.Error()
	switch {
	case d.LostFrom > 0 && d.LostTo >= d.LostFrom:
		f.Explanation += fmt.Sprintf(". Lost: entries %d..%d", d.LostFrom, d.LostTo)
	case d.LostFrom > 0:
		f.Explanation += fmt.Sprintf(". Lost: entry %d and whatever followed", d.LostFrom)
	}
	if holders := in.holders(m, d.LostFrom, d.LostTo); holders != "" {
		f.Explanation += "; " + holders
	}
	if d.Server != "" {
		f.Explanation += ". What etcd does: " + d.Server
	}
	f.Evidence = []Evidence{{Member: m.Label(), File: d.Segment, Offset: Int64(d.Offset), Length: d.Len,
		Field:    string(d.Kind),
		Observed: d.Error(), Expected: "a complete record that continues the CRC chain", Show: showLogAs(m, "--raw")}}
	return f
}

// holders names the members whose log still has the lost entries.
func (in *Input) holders(of *evidence.Member, from, to uint64) string {
	if from == 0 {
		return ""
	}
	to = max(from, to)
	var names []string
	for _, m := range in.Members {
		if m == of || !m.HasLog() || m.ClusterID != of.ClusterID {
			continue
		}
		if s := &m.WAL.Summary; s.FirstIndex <= from && s.LastIndex >= to {
			names = append(names, m.Label())
		}
	}
	if len(names) == 0 {
		return "no other source holds them"
	}
	return fmt.Sprintf("%v hold them", names)
}

// unreadableParts lists members whose part could not be read at all: what they hide is not checked.
func (in *Input) unreadableParts(part string) string {
	s := ""
	for _, m := range in.Members {
		for _, p := range m.Problems {
			if p.Part == part {
				s += fmt.Sprintf("%s: %s: %v; ", m.Label(), p.File, p.Err)
			}
		}
	}
	return s
}

var snapFiles = Check{
	ID: "S01", Title: "every raft snapshot file decodes and fits its CRC and name",
	Doc: `A .snap file holds a CRC-32C, the raft metadata and the v2 store as JSON. A server up to 3.6 renames a file that does not decode
to .broken and takes the next older one; 3.7 no longer reads them at boot.`,
	Run: runSnapFiles,
}

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
			if s.Damage != nil {
				damaged = append(damaged, s)
			}
		}
		fs = append(fs, placeFindings(damaged,
			func(s *dumplog.SnapFile) string { return fmt.Sprint(s.Damage.Kind, s.Broken) },
			func(s *dumplog.SnapFile) Finding { return snapFinding(m, s) }, snapRanges)...)
	}
	if !seen {
		return Result{Reason: "no source has a snap folder"}
	}
	return outcome(fs, in.unreadableParts("snap"))
}

// snapFinding is a damaged .snap file.
func snapFinding(m *evidence.Member, s *dumplog.SnapFile) Finding {
	sev := Error
	if s.Broken {
		sev = Warning
	}
	return Finding{Severity: sev, Class: "snapshot-damage", Members: []string{m.Label()},
		At:    At{Term: s.NameTerm, Index: s.NameIndex},
		Title: fmt.Sprintf("%s: snapshot file %s is damaged", m.Label(), s.File), Explanation: s.Damage.Error(),
		Evidence: []Evidence{{Member: m.Label(), File: s.File, Offset: Int64(s.Damage.Offset),
			Field: string(s.Damage.Kind), Observed: s.Damage.Error(),
			Expected: fmt.Sprintf("CRC %08x over the data, metadata %d/%d", s.StoredCRC, s.NameTerm, s.NameIndex),
			Show:     showLogAs(m, "--snaps")}}}
}

var snapNotAheadOfDB = Check{
	ID: "S02", Title: "the database is not older than the newest raft snapshot",
	Doc: `At boot the server takes the newest snapshot that the WAL knows and needs a database that has applied at least that index (or the
received <index>.snap.db). An older database means that files of different times were mixed, the directory was rolled back, a received database
was lost, or the consistent index was not stored although the database is complete; the entries in between tell which.`,
	Needs: NeedDB | NeedLog,
	Run:   runSnapNotAhead,
}

func runSnapNotAhead(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if !m.HasDB() || !m.HasWAL() || m.DB.KVDamaged {
			continue
		}
		checked++
		var newest dumplog.SnapshotRecord
		for _, s := range m.WAL.Summary.Snapshots {
			if s.Index > newest.Index {
				newest = s
			}
		}
		if newest.Index == 0 || m.ConsistentIndex() >= newest.Index || hasSnapDB(m, newest.Index) {
			continue
		}
		if m.ConsistentIndex() == 0 && m.DB.KV != nil && m.DB.KV.Revisions > 0 {
			continue // how old it is nothing says: C02
		}
		f := Finding{Severity: Critical, Members: []string{m.Label()},
			At: At{Index: m.ConsistentIndex() + 1, Term: in.termAt(m.ConsistentIndex() + 1)},
			Title: fmt.Sprintf("%s: the database (consistent index %d) is older than the raft snapshot at %d/%d",
				m.Label(), m.ConsistentIndex(), newest.Term, newest.Index),
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("consistent_index"),
				Observed: fmt.Sprint(m.ConsistentIndex()),
				Expected: fmt.Sprintf("at least %d", newest.Index), Show: showDB(m, "meta")},
				{Member: m.Label(), File: newest.Segment, Offset: Int64(newest.Offset), Field: "snapshot record",
					Observed: fmt.Sprintf("%d/%d", newest.Term, newest.Index), Show: showLogAs(m, "--raw")}}}
		in.judgeGap(&f, m, newest)
		fs = append(fs, f)
	}
	if checked == 0 {
		return Result{Reason: "no source has both a log and a sound database"}
	}
	return outcome(fs, "")
}

func hasSnapDB(m *evidence.Member, index uint64) bool {
	if !m.HasSnap() {
		return false
	}
	return slices.ContainsFunc(m.Snap.SnapDBs, func(s dumplog.SnapDB) bool { return s.Index >= index })
}
