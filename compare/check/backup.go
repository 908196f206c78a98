package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// The checks of family B look at files that are meant to be restored: backups and the streamed snapshots of running
// members.

// backups are the sources that are backups and could be looked at.
func (in *Input) backups() []*evidence.Member {
	var out []*evidence.Member
	for _, m := range in.Members {
		if (m.Source.Kind == evidence.KindBackup || m.Source.Kind == evidence.KindEndpoint) && m.DB != nil {
			out = append(out, m)
		}
	}
	return out
}

const noBackup = "no source is a backup"

// eachBackup runs a check over every backup that opens. A backup that does not open can not be checked.
func (in *Input) eachBackup(judge func(m *evidence.Member) []Finding) Result {
	var fs []Finding
	reason, opened := noBackup, false
	for _, m := range in.backups() {
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
func backupFinding(m *evidence.Member, sev Severity, title, explanation string, ev Evidence) Finding {
	ev.Member, ev.File = m.Label(), m.DB.File
	f := Finding{Severity: sev, Members: []string{m.Label()}, Title: m.Label() + ": " + title, Explanation: explanation,
		Evidence: []Evidence{ev}}
	if sev.Rank() >= Error.Rank() {
		f.Class = "backup-damaged"
	}
	return f
}

var backupTrailer = Check{
	ID: "B01", Title: "the sha256 trailer of a backup fits its content",
	Doc: `snapshot save appends the sha256 of the file. A mismatch means that the file changed after it was saved: restore refuses it. A file
without a trailer was copied from a data dir or saved raw; nothing then proves its bytes.`,
	Run: runBackupTrailer,
}

func runBackupTrailer(in *Input) Result {
	var fs []Finding
	list := in.backups()
	if len(list) == 0 {
		return Result{Reason: noBackup}
	}
	reason := ""
	for _, m := range list {
		switch t := m.DB.Trailer; {
		case m.DB.Foreign:
			reason = m.Label() + " is no database, so it has no place for a trailer"
		case t.State == "match":
		case t.State == "mismatch":
			f := backupFinding(m, Critical, "the sha256 trailer does not fit the content",
				"at least one byte of the backup changed after it was saved; etcdutl snapshot restore refuses it, "+
					"snapshot status does not notice",
				Evidence{Offset: Int64(m.DB.Size - 32), Length: 32, Field: FieldSHA256, Observed: t.Computed,
					Expected: t.Expected})
			fs = append(fs, f)
		case t.State == "absent" && m.DB.Handle == nil:
			reason = m.Label() + " is no database, so it has no place for a trailer"
		case t.State == "absent":
			f := backupFinding(m, Warning, "no sha256 trailer",
				"the file was not written by snapshot save (or lost its end); restore needs --skip-hash-check",
				Evidence{Field: FieldNoTrailer, Observed: "absent", Expected: "32 bytes behind the last page"})
			f.Class = "backup-unverifiable"
			fs = append(fs, f)
		default:
			reason = m.Label() + ": the trailer could not be read"
		}
	}
	return outcome(fs, reason)
}

var backupSize = Check{
	ID: "B02", Title: "a backup is exactly as long as its meta page says",
	Doc: `snapshot save writes the pages below the high-water mark of one transaction and 32 bytes of sha256, nothing more. A shorter file lost its
end: an interrupted download, a full disk. A longer one has something appended.
Normal: a database copied from a data dir may be longer than its high-water mark, by whole pages.`,
	Run: runBackupSize,
}

// metaBytes is what a file needs at least to hold one meta page's content; what is shorter does not even open.
const metaBytes = 80

func runBackupSize(in *Input) Result {
	var fs []Finding
	for _, m := range in.backups() {
		if m.DB.Handle == nil && m.DB.Size < metaBytes {
			fs = append(fs, backupFinding(m, Critical,
				fmt.Sprintf("the file is cut short: %d bytes are left", m.DB.Size),
				"not even the first meta page is there",
				Evidence{Field: FieldTruncated, Offset: Int64(m.DB.Size), Observed: fmt.Sprintf("%d bytes", m.DB.Size),
					Expected: "two meta pages and more"}))
		}
		if m.DB.Foreign {
			fs = append(fs, backupFinding(m, Critical,
				fmt.Sprintf("the file holds no etcd database: none of its %d bytes is of one", m.DB.Size),
				"it has neither a meta page nor any page that carries its own number: zeros, noise, or another kind "+
					"of file was saved under this name",
				Evidence{Field: FieldForeign, Observed: fmt.Sprintf("%d bytes without a page of a database", m.DB.Size),
					Expected: "what snapshot save writes"}))
		}
	}
	if len(fs) > 0 {
		return outcome(fs, "")
	}
	return in.eachBackup(judgeBackupSize)
}

// The fields that findings of B01 and B02 name, for the catalogue of causes.
const (
	FieldSHA256     = "sha256"
	FieldNoTrailer  = "sha256 trailer"
	FieldTruncated  = "size: content is missing"
	FieldCutTrailer = "size: the trailer is cut"
	FieldAppended   = "size: bytes behind the end"
	FieldForeign    = "content"
)

func judgeBackupSize(m *evidence.Member) []Finding {
	h := m.DB.Handle
	page := int64(h.PageSize())
	need, have := int64(min(h.Meta().HighWater, 1<<40))*page, h.Size()
	if m.DB.Trailer.State == "match" || m.DB.Trailer.State == "mismatch" {
		have -= 32
	}
	ev := Evidence{Observed: fmt.Sprintf("%d bytes", have),
		Expected: fmt.Sprintf("%d bytes, %d pages of %d", need, h.Meta().HighWater, page)}
	switch {
	case have < need:
		ev.Field, ev.Offset = FieldTruncated, Int64(have)
		return []Finding{backupFinding(m, Critical,
			fmt.Sprintf("the file is cut short: %d of %d bytes of content are there", have, need),
			"the meta page says how many pages the content has; the file ends before. What lies behind its end is lost.", ev)}
	case have == need, !h.SavedBySnapshot() && have%page == 0:
		return nil
	case have-need < 32:
		ev.Field, ev.Offset = FieldCutTrailer, Int64(need)
		return []Finding{backupFinding(m, Error, fmt.Sprintf("the sha256 trailer is cut: %d of 32 bytes are left",
			have-need),
			"the content is as long as it should be; the file lost its last bytes", ev)}
	case h.SavedBySnapshot():
		ev.Field, ev.Offset = FieldAppended, Int64(need)
		return []Finding{backupFinding(m, Error, fmt.Sprintf("%d bytes stand behind the end of the content", have-need),
			"snapshot save writes nothing there but 32 bytes of sha256; something was appended", ev)}
	}
	ev.Field, ev.Expected = FieldTruncated, fmt.Sprintf("a whole number of pages of %d bytes", page)
	return []Finding{backupFinding(m, Error, "the file does not end at the end of a page",
		"a copy that was interrupted, or bytes that do not belong to it", ev)}
}

var backupAgainst = Check{
	ID: "B08", Title: "the backup holds what the sources it is held against hold at the same revision",
	Doc: `A backup and a member of the same cluster hold the same records at every revision that both have. A difference there means that one of them
comes from another history: a diverged member, a backup of another cluster, an altered file. That the members went on since is no difference;
verify --against counts it.`,
	Run: func(*Input) Result { return Result{Reason: "needs verify --against"} },
}

var backupDrill = Check{
	ID: "B09", Title: "a server starts on the backup, and what it answers is what the backup holds",
	Doc: `The last proof of a backup is a restore: the file is restored into a scratch data dir, a server of the right line starts on it in a sandbox,
every key is read back through its API and held against the records of the file, with HashKV, leases, users and roles; then it takes a write.
Not checked unless verify --drill is given.`,
	Run: func(*Input) Result { return Result{Reason: "needs verify --drill"} },
}

var backupChain = Check{
	ID: "B10", Title: "the delta snapshots of a backup are whole and apply to its full snapshot",
	Doc: `etcd-backup-restore saves a full snapshot and, after it, delta snapshots with the changes of every revision since. Each delta fits its sha256,
no revision is missing between them, and each change fits the state that the full snapshot and the changes before it lead to: a put
names the create revision and version that follow, a delete a key that exists. A restore stops at the first delta that does not apply.
Normal: the first delta repeats a few revisions that the full snapshot holds already.`,
	OnDemand: true,
	Run:      func(*Input) Result { return Result{Reason: "the backup has no delta snapshots"} },
}

var backupFresh = Check{
	ID: "B11", Title: "a backup is as new as was asked for",
	Doc: `verify --max-age bounds the time since the backup was written, --max-behind the revisions that it is behind a source of --against. A backup
that holds and is older than that cannot be relied on for what was written since.`,
	OnDemand: true,
	Run:      func(*Input) Result { return Result{Reason: "needs verify --max-age or --max-behind"} },
}
