package verdict

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

// nextMend offers what gives nothing up, in this order: a start, where the server mends the damage by itself; the
// member's own log and pages; the same with the other members. done is true when a start is all that is needed.
func (j *judge) nextMend(add func(text string, command shell.Command)) (done bool) {
	done = true
	for i := range j.Findings {
		if f := &j.Findings[i]; f.Class != "" && f.Severity.Rank() >= check.Error.Rank() && !f.Check.MendedByStart() {
			done = false
		}
	}
	started := false
	for i := range j.Facts {
		f := &j.Facts[i]
		if j.kindOf(f.Name) != evidence.KindDataDir || j.lostData(f.Name) {
			continue
		}
		a := boot.Of(f)
		switch {
		case a.Trusted() && len(a.Mends) > 0:
			started = true
			add("start "+f.Name+" on its own data dir: "+strings.Join(a.Mends, "; ")+
				". Nothing that it promised is lost", none)
		case !a.Trusted():
			done = false
			j.nextMendFiles(f, &a, add)
		}
	}
	return done && started
}

// nextMendFiles offers the narrow repair of one member, where one fits the damage. They refuse rather than give
// anything up.
func (j *judge) nextMendFiles(f *evidence.Facts, a *boot.Answer, add func(text string, command shell.Command)) {
	refuses := "; it refuses rather than lose data, and checks the result. The plan tries it on a scratch copy " +
		"first"
	if len(j.Members) > 1 {
		refuses = " and, if that is not enough, from the other members" + refuses
	} else if f.WAL != nil && a.Forgot == nil || f.WAL != nil && len(f.WAL.Damage) > 0 {
		add("see what repairs "+f.Name+": the plan tries it on scratch copies, and says what works",
			shell.Format("etcd-medic repair plan {} -o plan.yaml", shell.Source(f.Name)))
	}
	switch {
	case f.WAL == nil:
	case len(f.WAL.Damage) > 0:
		cmd := shell.Format("etcd-medic repair wal {} -o {}.mended", shell.Source(f.Name), shell.FileName(f.Name))
		add("repair the log of "+f.Name+" from its own records"+refuses, j.withOthers(f, cmd))
	case a.Forgot != nil: // nothing in what is left of the log is wrong
	case (f.DB == nil || len(f.DB.Metas) == 0) && !reachesBack(f):
		return // nothing tells how far such a database has come
	case f.DB == nil || len(f.DB.Metas) == 0:
		cmd := shell.Format("etcd-medic repair db {} --rebuild -o {}.mended", shell.Source(f.Name),
			shell.FileName(f.Name))
		add("make the database of "+f.Name+" again from its own log, which reaches back to the first entry"+refuses,
			j.withOthers(f, cmd))
		if len(j.Members) == 1 {
			j.nextFromLog(f, add)
		}
	default:
		cmd := shell.Format("etcd-medic repair db {} --rebuild -o {}.mended", shell.Source(f.Name),
			shell.FileName(f.Name))
		add("repair the database of "+f.Name+" from its own pages and log"+refuses, j.withOthers(f, cmd))
	}
}

// nextMissingDB is for a data dir without a database: the server fills a new one from a log that is whole, else the log
// makes a backup.
func (j *judge) nextMissingDB(f *evidence.Facts, add func(text string, command shell.Command)) {
	if a := boot.Of(f); a.Trusted() && !j.lostData(f.Name) {
		add("start "+f.Name+" on its own data dir: "+strings.Join(a.Mends, "; "), none)
	}
	j.nextFromLog(f, add)
}

// nextFromLog offers to make a missing database again, where the member's own log reaches back to the first entry.
func (j *judge) nextFromLog(f *evidence.Facts, add func(text string, command shell.Command)) {
	if reachesBack(f) {
		add("the log of "+f.Name+" reaches back to the first entry: this makes a backup of all that it holds",
			shell.Format("etcd-medic rebuild --log {} --to last -o rebuilt.db", shell.Source(f.Name)))
	}
}

// reachesBack tells whether the member's own log is whole from the first entry on.
func reachesBack(f *evidence.Facts) bool {
	return f.WAL != nil && f.WAL.FirstIndex <= 1 && f.WAL.LastIndex > 0 && len(f.WAL.Damage) == 0
}

// withOthers adds the other data dirs of the cluster to a narrow repair.
func (j *judge) withOthers(f *evidence.Facts, cmd shell.Command) shell.Command {
	for _, m := range j.Members {
		if m.Label() != f.Name && m.ClusterID == f.ClusterID && m.MemberID != f.MemberID &&
			m.Source.Kind == evidence.KindDataDir {
			cmd = cmd.With("--with", shell.Source(m.Label()))
		}
	}
	return cmd
}

func (j *judge) kindOf(label string) evidence.Kind {
	for _, m := range j.Members {
		if m.Label() == label {
			return m.Source.Kind
		}
	}
	return ""
}

// lostData tells whether a finding says that the member was wiped, rolled back or put together from files of different
// times: then nothing in its files can be mended.
func (j *judge) lostData(label string) bool {
	return slices.ContainsFunc(j.Findings, func(f check.Finding) bool {
		return (f.Class == check.ClassMemberLostData || f.Class == check.ClassTornCopy) &&
			f.Severity.Rank() >= check.Error.Rank() &&
			slices.Contains(f.Members, label)
	})
}
