package verdict

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// needed are the checks without which "nothing found" means nothing.
var needed = map[check.ID]bool{check.W01: true, check.D02: true, check.K03: true, check.K01: true, check.R01: true}

// healthy decides between the healthy classes, or inconclusive when a needed check could not be made.
func (j *judge) healthy() {
	v := &j.Verdict
	if why := j.inconclusive(); why != "" {
		v.Class, v.Summary = check.ClassInconclusive, "nothing wrong was found, but "+why
		return
	}
	v.Health = check.Healthy
	switch {
	case has(j.Findings, check.ClassLagging):
		v.Class, v.Summary = check.ClassLagging, "members differ only in how far they have applied the log"
	case has(j.Findings, check.ClassUncommittedTail):
		v.Class, v.Summary = check.ClassUncommittedTail, "logs differ only above the commit index"
	case j.freshlyRestored():
		v.Class, v.Summary = check.ClassFreshlyRestored, "written by a restore and not started yet"
	case j.compactionSkew():
		v.Class, v.Summary = check.ClassCompactionSkew, "only compaction progress or page layout differs, the "+
			"content is equal"
	default:
		v.Class, v.Summary = check.ClassHealthy, "no problem found; members differ only as healthy members do"
		if n := j.absentVoters(); n > 0 {
			v.Summary = fmt.Sprintf("no problem found in this member. Whether it agrees with the other %s cannot be "+
				"checked without their data dirs", plural.Of(n, "voter", "voters"))
			if j.onlyBootstrapEntries() {
				v.Summary += ". It holds only the bootstrap of the cluster: it is new, or its data dir was wiped"
			}
		}
	}
	if why := j.apart(); why != "" {
		v.Summary += ". Keys were not compared everywhere: " + why
	}
	if why := j.withoutLogs(); why != "" && j.comparedAt() > 0 {
		v.Summary += fmt.Sprintf(". The members hold the same data at revision %d. Not proven: %s", j.comparedAt(), why)
	}
	for _, f := range j.Findings {
		if f.Severity == check.Warning {
			v.Summary += "; " + f.Title
		}
	}
}

// comparedAt is the revision at which the keys of the members were compared, 0 when they were not.
func (j *judge) comparedAt() (rev int64) {
	if j.Diff == nil {
		return 0
	}
	for _, at := range j.Diff.Revs {
		rev = max(rev, at)
	}
	return rev
}

// apart says which members could not be compared with the others because of their applied indexes: what one holds, the
// others have compacted. K03 compares each of them with the log as far as it reaches, which a verdict needs as well.
func (j *judge) apart() string {
	if j.Diff == nil {
		return ""
	}
	var why []string
	for i := range j.Members {
		if s := j.Diff.Apart[i]; s != "" && j.Diff.LeftOut[i] == "" {
			why = append(why, s)
		}
	}
	return strings.Join(why, "; ")
}

// absentVoters counts the voters other than the one member that was given. It is 0 when several were given, or the
// member is alone in its cluster.
func (j *judge) absentVoters() int {
	if len(j.Members) != 1 || j.Members[0].Source.Kind != evidence.KindDataDir {
		return 0
	}
	return max(len(j.Members[0].Membership.Voters)-1, 0)
}

// onlyBootstrapEntries reports whether the log of the only member holds the conf changes of its bootstrap and nothing
// else.
func (j *judge) onlyBootstrapEntries() bool {
	m := j.Members[0]
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
func (j *judge) inconclusive() string {
	if n := len(j.Unread); n > 0 {
		return fmt.Sprintf("%d of the sources could not be read", n)
	}
	for _, f := range j.Findings {
		if f.Class == check.ClassInconclusive {
			return f.Title
		}
	}
	if why := j.undecidedRows(); why != "" {
		return why
	}
	for _, k := range j.Checks {
		if k.Outcome != check.NotChecked || !needed[k.ID] || j.notCalledFor(k.ID) {
			continue
		}
		return fmt.Sprintf("check %s (%s) could not be made: %s", k.ID, k.Title, k.Reason)
	}
	return ""
}

// undecidedRows says what differs between snapshots of running members that writes between the snapshots may explain,
// where no log decides it.
func (j *judge) undecidedRows() string {
	if j.Diff == nil || j.withoutLogs() == "" {
		return ""
	}
	var what []string
	for i := range j.Diff.Buckets {
		if b := &j.Diff.Buckets[i]; b.Moved > 0 {
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
func (j *judge) notCalledFor(id check.ID) bool {
	logs, dbs, entries := 0, 0, 0
	for _, m := range j.Members {
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
		return len(j.Members) < 2 || dbs < 2 || j.apart() != ""
	case check.R01:
		return entries < 2
	}
	return false
}

func (j *judge) freshlyRestored() bool {
	for _, m := range j.Members {
		if !m.HasWAL() || m.WAL.Summary.Start != dumplog.StartRestore ||
			m.WAL.Summary.LastIndex != uint64(len(m.WAL.Conf)) {
			return false
		}
	}
	return true
}

// compactionSkew: an unfinished compaction, or marks that differ between members. A member that was removed does not
// compact any more.
func (j *judge) compactionSkew() bool {
	marks := map[string]bool{}
	for _, m := range j.Members {
		if !m.HasDB() || j.Membership().IsRemoved(m) {
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
