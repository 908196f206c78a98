package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// backupClass turns the class into that of a backup.
func (j *judge) backupClass() {
	if !j.Backup {
		return
	}
	m, v := j.Members[0], &j.Verdict
	switch state := m.DB.Trailer.State; {
	case v.Health == check.HealthUnknown:
	case v.Health != check.Healthy:
		v.Class = check.ClassBackupDamaged
	case state == "match":
		holds := j.unlessWarned("every layer of the backup holds", "no layer of the backup has an error")
		v.Class, v.Summary = check.ClassBackupGood, holds+content(m)+j.warnings()
		v.Statement = holds + j.warnings()
	case state == "absent":
		holds := j.unlessWarned("every check of the content holds", "no check of the content finds an error")
		v.Class, v.Summary = check.ClassBackupUnverifiable,
			holds+content(m)+"; no sha256 trailer proves the bytes"+j.warnings()
		v.Statement = holds + j.warnings()
		if len(j.Causes) > 0 {
			v.Cause, v.Certainty = &j.Causes[0].ID, &j.Causes[0].Certainty
		}
	}
}

// backupCauseFirst: if several causes fit a damaged backup, the one about the file as a whole explains the others.
func (j *judge) backupCauseFirst() {
	if !j.Backup {
		return
	}
	bad := slices.ContainsFunc(j.Findings,
		func(f check.Finding) bool { return f.Severity.Rank() >= check.Error.Rank() })
	whole := func(k Cause) int {
		switch {
		case k.ID == cause.BackupWithoutHash && bad: // it explains no damage
			return 2
		case k.ID.OfBackups():
			return 0
		}
		return 1
	}
	slices.SortStableFunc(j.Causes, func(a, b Cause) int { return cmp.Compare(whole(a), whole(b)) })
}

// unlessWarned returns what is said of a backup without warnings, or of one with some: a check that warns does not
// hold.
func (j *judge) unlessWarned(holds, warned string) string {
	if j.warnings() != "" {
		return warned
	}
	return holds
}

// warnings are the titles of findings that do not make the backup bad.
func (j *judge) warnings() string {
	s := ""
	for _, f := range j.Findings {
		if f.Severity == check.Warning && f.Class == "" {
			s += "; " + f.Title
		}
	}
	return s
}

// content says in short what the backup holds.
func content(m *evidence.Member) string {
	if m.DB.KV == nil {
		return ""
	}
	return fmt.Sprintf("; revision %d, %d keys", m.CurrentRevision(), m.DB.KV.LiveKeys)
}
