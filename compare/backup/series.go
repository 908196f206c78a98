package backup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// JudgeSeries compares each backup with the one before it in its series and adds the result to the report of the later
// one. What does not continue the earlier one is a warning: a restore between the two is a legitimate reason. The
// reports are those of the items, in the same order.
func JudgeSeries(items []*locate.Item, reports []*compare.Report) {
	last := map[string]int{}
	for _, i := range oldestFirst(items) {
		if !items[i].FromFolder || facts(reports[i]) == nil {
			continue
		}
		key := items[i].Given + "\x00" + items[i].Series
		if before, ok := last[key]; ok && certainOrder(items[before], items[i]) {
			judgeSuccessor(reports[before], reports[i], items[before])
		}
		last[key] = i
	}
}

// oldestFirst returns the numbers of the items in the order in which they were written.
func oldestFirst(items []*locate.Item) []int {
	out := make([]int, len(items))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(i, j int) int {
		switch a, b := items[i], items[j]; {
		case locate.Later(a, b):
			return 1
		case locate.Later(b, a):
			return -1
		}
		return 0
	})
	return out
}

// certainOrder reports whether b was written after a. The time of a file may be that of copying it, so the time stamps
// in the names have to agree with it. Names of chains begin with revisions, and their times are those of the names.
func certainOrder(a, b *locate.Item) bool {
	return a.Chain != nil && b.Chain != nil || a.Shown < b.Shown
}

// facts returns what was read of a backup, nil if its revision is not known for certain.
func facts(r *compare.Report) *evidence.Facts {
	if r.Backup == nil || r.Verdict.Health == check.Unhealthy || len(r.Members) == 0 || r.Members[0].DB == nil ||
		r.Members[0].DB.CurrentRevision == nil {
		return nil
	}
	return &r.Members[0]
}

// judgeSuccessor makes check B12.
func judgeSuccessor(before, r *compare.Report, earlier *locate.Item) {
	f := successorFinding(before, r)
	if len(f.Evidence) == 0 {
		Judge(r, check.B12, check.Holds, "")
		return
	}
	f.Check, f.ID = check.B12, string(check.B12)+"-1"
	if !earlier.Packed() {
		f.Remedy = []check.Remedy{{Text: "find the first revision at which the two differ", Command: shell.Format(
			"etcd-medic verify {} --against {}", shell.Source(Name(r)), earlier.Shown)}}
	}
	r.Checks = append(r.Checks, compare.CheckOutcome{ID: check.B12, Title: titleOf(check.B12),
		Outcome: check.Violated})
	r.Findings = append(r.Findings, f)
}

// successorFinding returns what shows that a backup does not continue the earlier one, the gravest last; no evidence if
// nothing does.
func successorFinding(before, r *compare.Report) check.Finding {
	a, b := facts(before), facts(r)
	name := Name(before)
	f := check.Finding{Kind: check.KindBackupNotContinued, Severity: check.Warning, Members: []string{Name(r)}}
	add := func(field, observed, expected string) {
		f.Evidence = append(f.Evidence, check.Evidence{Member: Name(r), Field: field, Observed: observed,
			Expected: expected})
	}
	revs := [2]int64{*a.DB.CurrentRevision, *b.DB.CurrentRevision}
	if x, y := a.DB.ConsistentIndex, b.DB.ConsistentIndex; revs[1] > revs[0] && x != nil && y != nil && *y < *x {
		f.Title = fmt.Sprintf("%s: raft index %d is lower than %d of the earlier backup %s", Name(r), *y, *x, name)
		f.Explanation = "the revision is higher and the index is lower, so the two are of different raft logs: the " +
			"cluster was restored between them"
		add("raft index", fmt.Sprint(*y), fmt.Sprintf("at least %d, as in %s", *x, name))
	}
	if revs[1] < revs[0] {
		f.Title = fmt.Sprintf("%s: revision %d is lower than %d of the earlier backup %s", Name(r), revs[1], revs[0],
			name)
		f.Explanation = fmt.Sprintf("the cluster was restored from an older backup between them, or the later one is "+
			"of a member that lags. If no restore was intended, %s holds writes that are lost in this one", name)
		add("revision", fmt.Sprint(revs[1]), fmt.Sprintf("at least %d, as in %s", revs[0], name))
	}
	if x, y := memberIDs(a), memberIDs(b); len(x) > 0 && len(y) > 0 && !knowsAny(b, a) {
		f.Title = fmt.Sprintf("%s: it has no member in common with the earlier backup %s", Name(r), name)
		f.Explanation = "the cluster was restored as a new cluster between the two, or the job saves another cluster " +
			"under the name of this one"
		if revs[1] < revs[0] {
			f.Title += fmt.Sprintf(", and its revision %d is lower than %d", revs[1], revs[0])
			f.Explanation += fmt.Sprintf(". The revision is lower, so %s may hold writes that are lost in this one",
				name)
		}
		add("members", y, "a member of "+x+" or the record of its removal")
	}
	return f
}

func memberIDs(m *evidence.Facts) string {
	var out []string
	for i := range m.Membership.Members {
		out = append(out, m.Membership.Members[i].ID.String())
	}
	return strings.Join(out, ", ")
}

// knowsAny reports whether m lists a member of the other, or one of them is removed from it.
func knowsAny(m, other *evidence.Facts) bool {
	return slices.ContainsFunc(other.Membership.Members, func(o dumpdb.Member) bool {
		return slices.Contains(m.Membership.Removed, dumplog.ID(o.ID)) ||
			slices.ContainsFunc(m.Membership.Members, func(x dumpdb.Member) bool { return x.ID == o.ID })
	})
}
