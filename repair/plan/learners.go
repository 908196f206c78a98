package plan

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// learners decides what happens to learners. A cluster accepts one at a time, so they are removed when voters come back
// as learners. Those that never started are removed too. A learner that joined and only lags is started.
func (pl *planner) learners() {
	rejoin := slices.ContainsFunc(pl.p.Members, func(m Member) bool { return m.Rejoins() })
	for i := range pl.p.Members {
		m := &pl.p.Members[i]
		switch {
		case !m.Learner || m.Action == Best || m.Action == Remove || m.Action == Retire:
		case rejoin:
			m.Action, m.Why = Remove, "a learner, and the cluster takes one at a time; add it again when the voters are well"
		case pl.stuck(m) == "":
		case m.Startable && rowOf(pl.facts(m.Source), m.ID) != nil:
			m.Action, m.Why = Start, pl.stuck(m)+"; it catches up once it runs. When it does not, remove it and add "+
				"it again, empty"
		default:
			m.Action, m.Why = Remove, pl.stuck(m)+"; add it again, empty, when the voters are well"
		}
	}
}

// stuck is what M10 found about a learner, "" when it makes progress.
func (pl *planner) stuck(m *Member) string {
	for i := range pl.r.Findings {
		f := &pl.r.Findings[i]
		if f.Check != check.M10 {
			continue
		}
		if m.Source != "" && slices.Contains(f.Members, m.Source) ||
			slices.Contains(f.Facts.About, m.ID) {
			return f.Title
		}
	}
	return ""
}

// bestLearns reports whether the member that is kept is a learner.
func (pl *planner) bestLearns() bool {
	m := pl.p.Member(pl.p.Best.Name)
	return m != nil && m.Learner
}

// votersFirst puts learners after voters of the same rank: a learner cannot lead.
func (pl *planner) votersFirst(labels []string) {
	learns := func(l string) int {
		if f := pl.facts(l); slices.Contains(f.Membership.Learners, f.MemberID) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(labels, func(a, b string) int { return learns(a) - learns(b) })
}
