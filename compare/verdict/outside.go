package verdict

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// wrongOutside are the backups and the data dirs of removed members that findings name, if nothing is wrong with any
// member, and nothing is lost: then no member has to be repaired.
func (ad *advice) wrongOutside() (wrong []string) {
	if ad.Best == nil || ad.mustChoose() || !ad.Best.Lost.None() {
		return nil
	}
	sound := 0
	for i := range ad.Best.Ranking {
		row := &ad.Best.Ranking[i]
		switch named := len(row.NamedBy) > 0; {
		case ad.isOutside(row.Member):
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

// isOutside reports whether a source is a backup, or the data dir of a member that was removed.
func (ad *advice) isOutside(name string) bool {
	return ad.kindOf(name) == evidence.KindBackup || ad.isRemoved(name)
}

func (ad *advice) isRemoved(name string) bool {
	return slices.ContainsFunc(ad.Members, func(m *evidence.Member) bool {
		return m.Label() == name && ad.Membership().IsRemoved(m)
	})
}

// nextWrongOutside says what to do about such sources, next to members that need no repair.
func (ad *advice) nextWrongOutside(wrong []string, add func(text string, command shell.Command)) {
	var backups, removed []string
	for _, name := range wrong {
		if ad.isRemoved(name) {
			removed = append(removed, name)
		} else {
			backups = append(backups, name)
		}
	}
	const sound = "no data dir of a member at hand has to be repaired. "
	if len(removed) > 0 {
		add(sound+"Leave out what is of a member that was removed, and start no server on it: "+
			strings.Join(removed, ", "), none)
	}
	if len(backups) > 0 {
		add(sound+"Do not restore from "+plural.Form(len(backups), "this backup", "these backups")+": "+
			strings.Join(backups, ", "), none)
		for _, s := range BackupNext() {
			add(s.Text, s.Command)
		}
	}
	if lost, known := ad.lostVoters(); known && len(lost) > 0 {
		ad.nextGather()
	}
	add("see which keys differ where", shell.Format("etcd-medic compare").Sources(ad.allLabels()...))
}
