package plan

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// learners decides what happens to learners. A cluster accepts one at a time, so they are removed when voters come back
// as learners. Those that never started are removed too. A learner that joined and only lags is started.
func (ro *roster) learners() {
	rejoin := slices.ContainsFunc(ro.p.Members, func(m Member) bool { return m.Rejoins() })
	for i := range ro.p.Members {
		m := &ro.p.Members[i]
		switch {
		case !m.Learner || m.Action == Best || m.Action == Remove || m.Action == Retire:
		case rejoin:
			m.Action, m.Why = Remove, "a learner, and the cluster takes one at a time; add it again when the voters "+
				"are well"
		case ro.stuck(m) == "":
		case m.Startable && rowOf(ro.facts(m.Source), m.ID) != nil:
			m.Action, m.Why = Start, ro.stuck(m)+"; it catches up once it runs. When it does not, remove it and add "+
				"it again, empty"
		default:
			m.Action, m.Why = Remove, ro.stuck(m)+"; add it again, empty, when the voters are well"
		}
	}
}

// stuck is what M10 found about a learner, "" when it makes progress.
func (ss *sources) stuck(m *Member) string {
	for i := range ss.r.Findings {
		f := &ss.r.Findings[i]
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
func (pr *procedures) bestLearns() bool {
	m := pr.p.Member(pr.p.Best.Name)
	return m != nil && m.Learner
}
