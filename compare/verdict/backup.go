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
		v.Class, v.Summary = check.ClassBackupGood, "every layer of the backup holds"+content(m)+j.warnings()
		v.Statement = "every layer of the backup holds" + j.warnings()
	case state == "absent":
		v.Class, v.Summary = check.ClassBackupUnverifiable,
			"every check of the content holds"+content(m)+"; no sha256 trailer proves the bytes"+
				j.warnings()
		v.Statement = "every check of the content holds" + j.warnings()
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
