package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// sources is what the report says of each source.
type sources struct {
	r     *compare.Report
	ranks map[string]*compare.Rank
	kinds map[string]evidence.Kind
}

func (ss *sources) facts(label string) *evidence.Facts {
	for i := range ss.r.Members {
		if ss.r.Members[i].Name == label {
			return &ss.r.Members[i]
		}
	}
	return &evidence.Facts{}
}

func (ss *sources) isDataDir(f *evidence.Facts) bool { return ss.kinds[f.Name] == evidence.KindDataDir }

// dataDirs are the labels of all data dirs.
func (ss *sources) dataDirs() []string {
	var out []string
	for i := range ss.r.Members {
		if f := &ss.r.Members[i]; ss.isDataDir(f) {
			out = append(out, f.Name)
		}
	}
	return out
}

func (ss *sources) hasKind(k evidence.Kind) bool {
	return slices.ContainsFunc(ss.r.Sources, func(s compare.Source) bool { return s.Kind == k })
}

// rankOf is a source's place in the ranking, from 0.
func (ss *sources) rankOf(f *evidence.Facts) int {
	if ss.r.Best == nil {
		return 0
	}
	for i := range ss.r.Best.Ranking {
		if ss.r.Best.Ranking[i].Member == f.Name {
			return i
		}
	}
	return len(ss.r.Best.Ranking)
}

// standings describe sources for the person who has to choose between them: cluster, revision.
func (ss *sources) standings(labels []string) string {
	var out []string
	for _, l := range labels {
		f := ss.facts(l)
		s := l
		if f.DB != nil && f.DB.CurrentRevision != nil {
			s += fmt.Sprintf(" at revision %d", *f.DB.CurrentRevision)
		}
		if ss.r.Best == nil {
			s += fmt.Sprintf(" (cluster %s, %s)", f.ClusterID, plural.Of(len(f.Membership.Voters), "voter", "voters"))
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// votersFirst puts learners after voters of the same rank: a learner cannot lead.
func (ss *sources) votersFirst(labels []string) {
	learns := func(l string) int {
		if f := ss.facts(l); slices.Contains(f.Membership.Learners, f.MemberID) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(labels, func(a, b string) int { return learns(a) - learns(b) })
}

// newestRevision is the highest revision that any source shows.
func (ss *sources) newestRevision() (rev int64) {
	for i := range ss.r.Members {
		if db := ss.r.Members[i].DB; db != nil && db.CurrentRevision != nil {
			rev = max(rev, *db.CurrentRevision)
		}
	}
	return rev
}
