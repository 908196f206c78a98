package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// walRecordLimit is the record size from which etcd 3.2.32, 3.3.23 to 3.3.27, 3.4.10 to 3.4.45 and 3.5.0 to 3.5.4
// refuse to read a sound log (maxWALEntrySizeLimit, wal/decoder.go).
const walRecordLimit = 10 << 20

var recordsReadable = described(Check{
	ID:    W04,
	Needs: NeedLog,
	Run:   runRecordsReadable,
})

func runRecordsReadable(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasWAL() || m.WAL.Summary.LargestRecord < walRecordLimit {
			continue
		}
		s := &m.WAL.Summary
		fs = append(fs, Finding{Kind: KindRecordTooLarge, Severity: Warning, Members: []string{m.Label()},
			Title: fmt.Sprintf("%s: a sound WAL record has %s; servers before 3.5.5 do not read it back",
				m.Label(), plural.Size(s.LargestRecord)),
			Explanation: "3.2.32, 3.3.23 to 3.3.27, 3.4.10 to 3.4.45 and 3.5.0 to 3.5.4 refuse to start on it: max " +
				"entry size limit exceeded",
			Evidence: []Evidence{{Member: m.Label(), File: s.LargestPos.Segment, Offset: Int64(s.LargestPos.Offset),
				Length: s.LargestRecord, Field: "oversize",
				Observed: fmt.Sprintf("%d bytes, the CRC holds", s.LargestRecord),
				Expected: fmt.Sprintf("less than %d", walRecordLimit), Show: showLogAs(m, "--raw")}}})
	}
	return outcome(fs, in.Members.unreadableParts("wal"))
}

var logReachesBack = described(Check{
	ID:    W05,
	Needs: NeedLog,
	Run:   runLogReachesBack,
})

func runLogReachesBack(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasWAL() || m.WAL.Summary.Start != dumplog.StartPurged {
			continue
		}
		s := &m.WAL.Summary
		if s.FirstIndex > 0 && startPoint(m)+1 < s.FirstIndex {
			fs = append(fs, purgedFinding(m))
		} else if first := s.Segments[0]; first.First > startPoint(m) {
			fs = append(fs, firstNameFinding(m, first))
		} else if m.Version.MayFollow(release.PurgedLogRefused) && len(s.Damage) == 0 {
			fs = append(fs, falseAlarmFinding(m))
		}
	}
	return outcome(fs, in.Members.unreadableParts("wal"))
}

// startPoint is the newest snapshot that the log names. S01 reports a missing or damaged file.
func startPoint(m *evidence.Member) (index uint64) {
	for _, s := range m.WAL.Summary.Snapshots {
		index = max(index, s.Index)
	}
	return index
}

func purgedFinding(m *evidence.Member) Finding {
	s, from := &m.WAL.Summary, startPoint(m)
	f := Finding{Kind: KindLogPurged, Severity: Critical, Class: ClassWALDamage, Members: []string{m.Label()},
		At: At{Index: from + 1},
		Title: fmt.Sprintf("%s: the log begins at entry %d, the newest snapshot that it names is at %d",
			m.Label(), s.FirstIndex, from),
		Explanation: fmt.Sprintf("the entries %d..%d are in no segment; a server finds no place to start from", from+1,
			s.FirstIndex-1)}
	if m.ConsistentIndex()+1 >= s.FirstIndex {
		f.Explanation += fmt.Sprintf(". The database has applied entry %d, so its content covers the gap",
			m.ConsistentIndex())
	}
	f.Evidence = []Evidence{{Member: m.Label(), File: s.Segments[0].Name, Field: "purged",
		Observed: fmt.Sprintf("first entry %d in segment %d", s.FirstIndex, s.Segments[0].Seq),
		Expected: fmt.Sprintf("an entry at or below %d", from+1), Show: showLogAs(m, "--raw")}}
	return f
}

// firstNameFinding: a server finds the first segment to read by the indexes in the names: one must not be above the
// newest snapshot. It purges no segment that a snapshot in the log needs.
func firstNameFinding(m *evidence.Member, first dumplog.Segment) Finding {
	return Finding{Kind: KindFirstSegmentMisnamed, Severity: Critical, Class: ClassWALDamage,
		Members: []string{m.Label()}, At: At{Index: first.First},
		Title: fmt.Sprintf("%s: the first segment is named for index %d, the newest snapshot that the log "+
			"names is at %d", m.Label(), first.First, startPoint(m)),
		Explanation: "a server finds no segment to start from: the file was renamed, or the segments before it were " +
			"removed",
		Evidence: []Evidence{{Member: m.Label(), File: first.Name, Field: string(dumplog.DamageName),
			Observed: fmt.Sprintf("index %d", first.First), Expected: fmt.Sprintf("at most %d", startPoint(m)),
			Show: showLogAs(m, "--raw")}}}
}

func falseAlarmFinding(m *evidence.Member) Finding {
	seg := m.WAL.Summary.Segments[0]
	return Finding{Kind: KindLogPurgedAndSound, Severity: Info, Members: []string{m.Label()},
		Title: fmt.Sprintf("%s: the log begins with segment %d and is sound", m.Label(), seg.Seq),
		Explanation: "if a server of 3.3.21 or 3.4.8 reports a crc mismatch on it, the server is wrong: it compares " +
			"the head of the first segment with a chain of 0",
		Evidence: []Evidence{{Member: m.Label(), File: seg.Name, Offset: Int64(0), Field: "purged and sound",
			Observed: "every record continues the CRC chain that the segment's CRC record begins",
			Show:     showLogAs(m, "--raw")}}}
}
