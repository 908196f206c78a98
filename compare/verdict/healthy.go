package verdict

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// needed are the checks without which "nothing found" means nothing.
var needed = map[check.ID]bool{check.W01: true, check.D02: true, check.K03: true, check.K01: true, check.R01: true}

// health decides what a set without errors is called.
type health struct {
	*Input
	Verdict *Verdict
}

// healthy decides between the healthy classes, or inconclusive when a needed check could not be made.
func (hl *health) healthy() {
	v := hl.Verdict
	if why := hl.inconclusive(); why != "" {
		v.Class, v.Summary = check.ClassInconclusive, "nothing wrong was found, but "+why
		return
	}
	v.Health = check.Healthy
	switch {
	case has(hl.Findings, check.ClassLagging):
		v.Class, v.Summary = check.ClassLagging, "members differ only in how far they have applied the log"
	case has(hl.Findings, check.ClassUncommittedTail):
		v.Class, v.Summary = check.ClassUncommittedTail, "logs differ only above the commit index"
	case hl.freshlyRestored():
		v.Class, v.Summary = check.ClassFreshlyRestored, "written by a restore and not started yet"
	case hl.compactionSkew() && hl.apart() != "":
		v.Class, v.Summary = check.ClassCompactionSkew, "only compaction progress or page layout differs"
	case hl.compactionSkew():
		v.Class, v.Summary = check.ClassCompactionSkew, "only compaction progress or page layout differs, the "+
			"content is equal"
	default:
		v.Class, v.Summary = check.ClassHealthy, "no problem found"
		if len(hl.Members) > 1 {
			v.Summary += "; members differ only as healthy members do"
		}
		if n := hl.absentVoters(); n > 0 {
			v.Summary = fmt.Sprintf("no problem found in this member. Whether it agrees with the other %s cannot be "+
				"checked without their data dirs", plural.Of(n, "voter", "voters"))
			if hl.onlyBootstrapEntries() {
				v.Summary += ". It holds only the bootstrap of the cluster: it is new, or its data dir was wiped"
			}
		}
	}
	if why := hl.apart(); why != "" {
		v.Summary += ". Keys were not compared everywhere: " + why
	}
	if why := cmp.Or(hl.withoutLogs(), hl.aboveLogs()); why != "" && hl.comparedAt() > 0 {
		v.Summary += fmt.Sprintf(". The members hold the same data at revision %d. Not proven: %s", hl.comparedAt(),
			why)
	}
	for _, f := range hl.Findings {
		if f.Severity == check.Warning {
			v.Summary += "; " + f.Title
		}
	}
}

// comparedAt is the revision at which the keys of the members were compared, 0 when they were not.
func (hl *health) comparedAt() (rev int64) {
	if hl.Diff == nil {
		return 0
	}
	for _, at := range hl.Diff.Revs {
		rev = max(rev, at)
	}
	return rev
}

// apart says which members could not be compared with the others because of their applied indexes: what one holds, the
// others have compacted. K03 compares each of them with the log as far as it reaches, which a verdict needs as well.
func (hl *health) apart() string {
	if hl.Diff == nil {
		return ""
	}
	var why []string
	for i := range hl.Members {
		if s := hl.Diff.KeysNotCompared[i]; s != "" && hl.Diff.NotCompared[i] == "" {
			why = append(why, s)
		}
	}
	return strings.Join(why, "; ")
}

// absentVoters counts the voters other than the one member that was given. It is 0 when several were given, or the
// member is alone in its cluster.
func (in *Input) absentVoters() int {
	if len(in.Members) != 1 || in.Members[0].Source.Kind != evidence.KindDataDir {
		return 0
	}
	return max(len(in.Members[0].Membership.Voters)-1, 0)
}

// onlyBootstrapEntries reports whether the log of the only member holds the conf changes of its bootstrap and nothing
// else.
func (hl *health) onlyBootstrapEntries() bool {
	m := hl.Members[0]
	return m.HasLog() && m.WAL.Summary.LastIndex == check.BootstrapVoters(m)
}

func has(fs []check.Finding, class check.Class) bool {
	for _, f := range fs {
		if f.Class == class {
			return true
		}
	}
	return false
}

// inconclusive says which needed check could not be made although the sources call for it.
func (hl *health) inconclusive() string {
	if n := len(hl.Unread); n > 0 {
		return fmt.Sprintf("%d of the sources could not be read", n)
	}
	for _, f := range hl.Findings {
		if f.Class == check.ClassInconclusive {
			return f.Title
		}
	}
	if why := hl.undecidedRows(); why != "" {
		return why
	}
	for _, k := range hl.Checks {
		if k.Outcome != check.NotChecked || !needed[k.ID] || hl.notCalledFor(k.ID) {
			continue
		}
		return fmt.Sprintf("check %s (%s) could not be made: %s", k.ID, k.Title, k.Reason)
	}
	return ""
}

// undecidedRows says what differs between snapshots of running members that writes between the snapshots may explain,
// where no log decides it.
func (hl *health) undecidedRows() string {
	if hl.Diff == nil || hl.withoutLogs() == "" {
		return ""
	}
	var what []string
	for i := range hl.Diff.Buckets {
		if b := &hl.Diff.Buckets[i]; b.Moved > 0 {
			what = append(what, fmt.Sprintf("%s of bucket %s", plural.Of(b.Moved, "row", "rows"), b.Name))
		}
	}
	if len(what) == 0 {
		return ""
	}
	return strings.Join(what, ", ") + " differ between the members, which may have changed between the moments of " +
		"their snapshots: run it again, or copy the members with their logs (etcd-medic collect)"
}

// notCalledFor: a single source needs no comparison, a backup has no log, and a log without a database has no content.
func (hl *health) notCalledFor(id check.ID) bool {
	logs, dbs, entries := 0, 0, 0
	for _, m := range hl.Members {
		if m.HasWAL() {
			logs++
		}
		if m.HasLog() {
			entries++ // a data dir that was cloned from a database has a log that begins after it, without entries
		}
		if m.DB != nil {
			dbs++
		}
	}
	switch id {
	case check.W01, check.K03:
		return logs == 0 || id == check.K03 && (dbs == 0 || entries == 0)
	case check.D02:
		return dbs == 0
	case check.K01:
		return len(hl.Members) < 2 || dbs < 2 || hl.apart() != ""
	case check.R01:
		return entries < 2
	}
	return false
}

func (hl *health) freshlyRestored() bool {
	for _, m := range hl.Members {
		if !m.HasWAL() || m.WAL.Summary.Start != dumplog.StartRestore ||
			m.WAL.Summary.LastIndex != uint64(len(m.WAL.Conf)) {
			return false
		}
	}
	return true
}

// compactionSkew: an unfinished compaction, or marks that differ between members. A member that was removed does not
// compact any more.
func (hl *health) compactionSkew() bool {
	marks := map[string]bool{}
	for _, m := range hl.Members {
		if !m.HasDB() || hl.Membership().IsRemoved(m) {
			continue
		}
		s, f := m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact
		if s != nil && (f == nil || f.Main < s.Main) {
			return true
		}
		marks[fmt.Sprint(m.CompactRevision())] = true
	}
	return len(marks) > 1
}
