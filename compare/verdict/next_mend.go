package verdict

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// nextMend offers repairs that lose nothing, in this order: a start, if the server repairs the damage itself; the
// member's own files; the same with the other members. done is true when a start is all that is needed.
func (ad *advice) nextMend(add func(text string, command shell.Command)) (done bool) {
	done = true
	for i := range ad.Findings {
		if f := &ad.Findings[i]; f.Class != "" && f.Severity.Rank() >= check.Error.Rank() && !f.Check.MendedByStart() {
			done = false
		}
	}
	started := false
	var mends []string
	var fromLog []*evidence.Facts
	for i := range ad.Facts {
		f := &ad.Facts[i]
		if ad.kindOf(f.Name) != evidence.KindDataDir || ad.lostData(f.Name) {
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
			if what := ad.mendsOf(f, &a); what != "" {
				mends = append(mends, what)
			}
			if a.Forgot == nil && (f.DB == nil || len(f.DB.Metas) == 0) && len(ad.Members) == 1 {
				fromLog = append(fromLog, f)
			}
		}
	}
	ad.nextTry(mends, add)
	for _, f := range fromLog {
		ad.nextFromLog(f, add)
	}
	return done && started
}

// mendsOf says which surgery fits the damage of a member, "" where none does. Only doing it shows whether something is
// lost. The plan tries it on a scratch copy, so the plan is suggested.
func (ad *advice) mendsOf(f *evidence.Facts, a *boot.Answer) string {
	switch {
	case f.WAL == nil:
	case len(f.WAL.Damage) > 0, a.Forgot != nil && len(ad.Members) > 1:
		return "the log of " + f.Name + " (repair wal)"
	case a.Forgot != nil: // the log that remains is sound, and no repair can bring back the rest
	case (f.DB == nil || len(f.DB.Metas) == 0) && !reachesBack(f):
		// nothing shows which entries such a database has applied
	default:
		return "the database of " + f.Name + " (repair db --rebuild)"
	}
	return ""
}

// nextTry suggests the plan that tries the surgery.
func (ad *advice) nextTry(mends []string, add func(text string, command shell.Command)) {
	if len(mends) == 0 {
		return
	}
	from := "its own files"
	if len(mends) > 1 {
		from = "their own files"
	}
	if len(ad.Members) > 1 {
		from += ", else from the other members"
	}
	text := "repair " + strings.Join(mends, ", ") + " from " + from + ": tried on scratch copies first, used only if " +
		"nothing is lost"
	if ad.mustChoose() {
		text += ". " + ad.nameOneText()
	}
	add(text, ad.planCommand())
}

// nextMissingDB is for a data dir without a database: the server fills a new one from a log that is whole, else the log
// makes a backup.
func (ad *advice) nextMissingDB(f *evidence.Facts, add func(text string, command shell.Command)) {
	if a := boot.Of(f); a.Trusted() && !ad.lostData(f.Name) {
		add("start "+f.Name+" on its own data dir: "+strings.Join(a.Mends, "; "), none)
	}
	ad.nextFromLog(f, add)
}

// nextFromLog offers to rebuild a missing database if the member's own log reaches back to the first entry.
func (ad *advice) nextFromLog(f *evidence.Facts, add func(text string, command shell.Command)) {
	if reachesBack(f) {
		add("the log of "+f.Name+" reaches back to the first entry: this makes a backup of all that it holds",
			shell.Format("etcd-medic rebuild --log {} --to last -o rebuilt.db", shell.Source(f.Name)))
	}
}

// nextFromDatabases offers a new cluster from a database whose log is missing, and which holds what no log does.
func (ad *advice) nextFromDatabases(add func(text string, command shell.Command)) {
	for _, m := range ad.Members {
		if m.Source.Kind != evidence.KindDataDir || !ad.Members.NewestWithoutLog(m) || len(m.DB.Damage) > 0 ||
			slices.ContainsFunc(ad.Members, func(o *evidence.Member) bool {
				return o.HasLog() && o.LastIndex() >= m.ConsistentIndex()
			}) {
			continue
		}
		command := shell.Format("etcd-medic restore {} -o new-cluster --accept-unproven-content",
			shell.Source(m.Label()))
		for _, o := range ad.Members {
			if o != m {
				command = command.With("--surviving", shell.Source(o.Label()))
			}
		}
		add("if the log of "+m.Label()+" is gone for good: a new cluster from its database, which holds what no log "+
			"has; entries after it may be lost", command)
	}
}

// reachesBack reports whether the member's own log is whole from the first entry of a cluster that began empty.
func reachesBack(f *evidence.Facts) bool {
	return f.WAL != nil && f.WAL.FirstIndex <= 1 && f.WAL.LastIndex > 0 && len(f.WAL.Damage) == 0 &&
		f.WAL.Start != dumplog.StartRestore
}

func (in *Input) kindOf(label string) evidence.Kind {
	for _, m := range in.Members {
		if m.Label() == label {
			return m.Source.Kind
		}
	}
	return ""
}

// lostData reports whether a finding says that the member was wiped, rolled back or put together from files of
// different times. Then nothing in its files can be repaired.
func (ad *advice) lostData(label string) bool {
	return slices.ContainsFunc(ad.Findings, func(f check.Finding) bool {
		return (f.Class == check.ClassMemberLostData || f.Class == check.ClassTornCopy) &&
			f.Severity.Rank() >= check.Error.Rank() &&
			slices.Contains(f.Members, label)
	})
}
