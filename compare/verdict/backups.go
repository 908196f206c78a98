package verdict

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// wrongBackups are the backups that findings name, if nothing is wrong with any member: then no member has to be
// repaired.
func (ad *advice) wrongBackups() (wrong []string) {
	if ad.Best == nil || ad.mustChoose() {
		return nil
	}
	sound := 0
	for i := range ad.Best.Ranking {
		row := &ad.Best.Ranking[i]
		switch named := len(row.NamedBy) > 0; {
		case ad.isBackup(row.Member):
			if named {
				wrong = append(wrong, row.Member)
			}
		case named || row.wrongEffects() > 0 || !row.Usable,
			row.Behind == 0 && !slices.Contains(ad.Best.Members, row.Member):
			return nil
		default:
			sound++
		}
	}
	if sound == 0 || slices.ContainsFunc(ad.Findings, func(f check.Finding) bool {
		return f.Severity.Rank() >= check.Error.Rank() && needsOthers[f.Class] &&
			!slices.ContainsFunc(f.Members, func(name string) bool { return slices.Contains(wrong, name) })
	}) {
		return nil
	}
	slices.Sort(wrong)
	return wrong
}

func (ad *advice) isBackup(name string) bool { return ad.kindOf(name) == evidence.KindBackup }

// nextWrongBackups says what to do about backups whose content is wrong, next to members that need no repair.
func (ad *advice) nextWrongBackups(wrong []string, add func(text string, command shell.Command)) {
	add("no data dir at hand has to be repaired. Do not restore from "+plural.Form(len(wrong), "this backup",
		"these backups")+": "+strings.Join(wrong, ", "), none)
	for _, s := range BackupNext() {
		add(s.Text, s.Command)
	}
	add("see which keys differ where", shell.Format("etcd-medic compare").Sources(ad.allLabels()...))
}
