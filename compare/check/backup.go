package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// The checks of family B look at files that are meant to be restored: backups and the streamed snapshots of running
// members.

const noBackup = "no source is a backup"

// judgeBackups runs a check over every backup that opens. A backup that does not open cannot be checked.
func judgeBackups(ss Sources, judge func(m *evidence.Member) []Finding) Result {
	var fs []Finding
	reason, opened := noBackup, false
	for _, m := range ss.backups() {
		if m.DB.Handle == nil {
			reason = m.Label() + " does not open as a database"
			continue
		}
		opened = true
		fs = append(fs, judge(m)...)
	}
	if opened && reason == noBackup {
		reason = ""
	}
	if !opened {
		return Result{Reason: reason}
	}
	return outcome(fs, reason)
}

// backupFinding begins a finding about a row or field of a backup.
func backupFinding(m *evidence.Member, kind Kind, sev Severity, title, explanation string, ev Evidence) Finding {
	ev.Member, ev.File = m.Label(), m.DB.File
	f := Finding{Kind: kind, Severity: sev, Members: []string{m.Label()}, Title: m.Label() + ": " + title,
		Explanation: explanation,
		Evidence:    []Evidence{ev}}
	if sev.Rank() >= Error.Rank() {
		f.Class = ClassBackupDamaged
	}
	return f
}

var backupTrailer = described(Check{
	ID:  B01,
	Run: runBackupTrailer,
})

func runBackupTrailer(in *Input) Result {
	var fs []Finding
	list := in.Members.backups()
	if len(list) == 0 {
		return Result{Reason: noBackup}
	}
	reason := ""
	for _, m := range list {
		switch t := m.DB.Trailer; {
		case m.DB.Foreign:
			reason = m.Label() + " is not a database, so it cannot have a trailer"
		case t.State == "match":
		case t.State == "mismatch":
			f := backupFinding(m, KindTrailerMismatch, Critical, "the sha256 trailer does not fit the content",
				"at least one byte of the backup changed after it was saved; etcdutl snapshot restore refuses it, "+
					"snapshot status does not notice",
				Evidence{Offset: Int64(m.DB.Size - 32), Length: 32, Field: "sha256", Observed: t.Computed,
					Expected: t.Expected})
			fs = append(fs, f)
		case t.State == "absent" && m.DB.Handle == nil:
			reason = m.Label() + " is not a database, so it cannot have a trailer"
		case t.State == "absent":
			f := backupFinding(m, KindTrailerAbsent, Warning, "no sha256 trailer",
				"the file was not written by snapshot save (or lost its end); restore needs --skip-hash-check",
				Evidence{Field: "sha256 trailer", Observed: "absent", Expected: "32 bytes after the last page"})
			f.Class = ClassBackupUnverifiable
			fs = append(fs, f)
		default:
			reason = m.Label() + ": the trailer could not be read"
		}
	}
	return outcome(fs, reason)
}

var backupSize = described(Check{
	ID:  B02,
	Run: runBackupSize,
})

// metaBytes is the size of a file that holds the content of one meta page; a shorter file does not open.
const metaBytes = 80

func runBackupSize(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members.backups() {
		if m.DB.Handle == nil && m.DB.Size < metaBytes && !m.DB.Foreign {
			fs = append(fs, backupFinding(m, KindBackupCut, Critical,
				fmt.Sprintf("the file is cut short: %s are left", plural.Size(m.DB.Size)),
				"not even the first meta page is there",
				Evidence{Field: "size: content is missing", Offset: Int64(m.DB.Size),
					Observed: plural.Of(m.DB.Size, "byte", "bytes"),
					Expected: "two meta pages and more"}))
		}
		if m.DB.Foreign {
			fs = append(fs, backupFinding(m, KindBackupForeign, Critical,
				fmt.Sprintf("the file holds no etcd database: none of its %s is of one", plural.Size(m.DB.Size)),
				"it has neither a meta page nor any page that carries its own number: zeros, noise, or another kind "+
					"of file was saved under this name",
				Evidence{Field: "content", Observed: fmt.Sprintf("%d bytes without a page of a database", m.DB.Size),
					Expected: "what snapshot save writes"}))
		}
	}
	if len(fs) > 0 {
		return outcome(fs, "")
	}
	return judgeBackups(in.Members, judgeBackupSize)
}

func judgeBackupSize(m *evidence.Member) []Finding {
	h := m.DB.Handle
	page := int64(h.PageSize())
	end, need, have := h.Ending()
	ev := Evidence{Observed: plural.Of(have, "byte", "bytes"),
		Expected: fmt.Sprintf("%d bytes, %d pages of %d", need, h.Meta().HighWater, page)}
	switch end {
	case dumpdb.EndsWhole:
		return nil
	case dumpdb.EndsCut:
		ev.Field, ev.Offset = "size: content is missing", Int64(have)
		return []Finding{backupFinding(m, KindBackupCut, Critical,
			fmt.Sprintf("the file is cut short: %s of content are there", plural.SizeOf(have, need)),
			"the meta page says how many pages the content has, and the file ends before. The rest is lost.", ev)}
	case dumpdb.EndsInTrailer:
		ev.Field, ev.Offset = "size: the trailer is cut", Int64(need)
		return []Finding{backupFinding(m, KindTrailerCut, Error,
			fmt.Sprintf("the sha256 trailer is cut: %d of 32 bytes are left",
				have-need),
			"the content is as long as it should be; the file lost its last bytes", ev)}
	case dumpdb.EndsWithOthers:
		ev.Field, ev.Offset = "size: bytes after the end", Int64(need)
		return []Finding{backupFinding(m, KindBackupAppended, Error,
			fmt.Sprintf("%s follow the end of the content", plural.Size(have-need)),
			"snapshot save writes nothing there but 32 bytes of sha256; something was appended", ev)}
	}
	ev.Field, ev.Expected = "size: content is missing", fmt.Sprintf("a whole number of pages of %d bytes", page)
	return []Finding{backupFinding(m, KindBackupCut, Error, "the file does not end at the end of a page",
		"a copy that was interrupted, or bytes that do not belong to it", ev)}
}

var backupAgainst = described(Check{
	ID:  B08,
	Run: func(*Input) Result { return Result{Reason: "needs verify --against"} },
})

var backupDrill = described(Check{
	ID:  B09,
	Run: func(*Input) Result { return Result{Reason: "needs verify --drill"} },
})

var backupChain = described(Check{
	ID:       B10,
	OnDemand: true,
	Run:      func(*Input) Result { return Result{Reason: "the backup has no delta snapshots"} },
})

var backupFresh = described(Check{
	ID:       B11,
	OnDemand: true,
	Run:      func(*Input) Result { return Result{Reason: "needs verify --max-age or --max-behind"} },
})

var backupSeries = described(Check{
	ID:       B12,
	OnDemand: true,
	Run:      func(*Input) Result { return Result{Reason: "needs verify of a folder with an earlier backup"} },
})
