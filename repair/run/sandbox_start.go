package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// logEnd is where a log ends. Servers vote for a member whose log ends in a higher term, or at a higher index of it.
type logEnd struct{ term, index uint64 }

// logEnds returns where the logs of the members end that a set has data dirs of.
func (s *session) logEnds(set *evidence.Set) map[string]logEnd {
	out := map[string]logEnd{}
	for _, m := range set.Members {
		if p := s.bySource(m.Label()); p != nil && m.HasWAL() {
			out[p.Name] = logEnd{m.WAL.Summary.LastTerm, m.LastIndex()}
		}
	}
	return out
}

// aloneFor is how long the members with the newest logs may take to elect a leader before the others are started too.
const aloneFor = 10 * time.Second

// launch starts members and waits until they serve. If a member other than the best exits, this is only reported: a
// majority is enough.
//
// The data dirs of a running cluster are copied one after the other. So most of the copies may lack entries that an
// entry in a later copy shows as committed. Servers on such copies elect one of themselves. The leader then replaces
// committed entries, or ends with "need non-empty snapshot" once the member with the later copy reports its commit
// index (raft.go, maybeSendAppend). So a majority starts first, made of the members with the newest logs: each of its
// members must vote, and only the newest log gets all votes.
func (s *sandboxHost) launch(ctx context.Context, r *runner, members []*plan.Member) (notes []string, err error) {
	first, rest := s.newestLogs(r.plan, members)
	if err := s.startAll(ctx, r, first); err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		s.serveAlone(ctx, first)
		if err := s.startAll(ctx, r, rest); err != nil {
			return nil, err
		}
	}
	for _, m := range members {
		err := s.ready(ctx, m)
		var ended *node.StartError
		switch {
		case err == nil:
		case errors.As(err, &ended) && m.Action != plan.Best:
			notes = append(notes, err.Error())
		default:
			return notes, err
		}
	}
	return notes, nil
}

// newestLogs divides members into a majority with the newest logs, and the others.
func (s *sandboxHost) newestLogs(p *plan.Plan, members []*plan.Member) (first, rest []*plan.Member) {
	voters := slices.DeleteFunc(slices.Clone(members), func(m *plan.Member) bool { return m.Learner })
	slices.SortStableFunc(voters, func(x, y *plan.Member) int {
		a, b := s.logs[x.Name], s.logs[y.Name]
		return cmp.Or(cmp.Compare(b.term, a.term), cmp.Compare(b.index, a.index))
	})
	first = voters[:min(plan.Majority(p.Cluster.Voters), len(voters))]
	return first, slices.DeleteFunc(slices.Clone(members),
		func(m *plan.Member) bool { return slices.Contains(first, m) })
}

// startAll starts members without waiting for them.
func (s *sandboxHost) startAll(ctx context.Context, r *runner, members []*plan.Member) error {
	for _, m := range members {
		if err := s.start(ctx, m, startHow{initialCluster: r.j.value("initial:" + m.Name)}); err != nil {
			return err
		}
	}
	return nil
}

// serveAlone waits until members serve, unless one of them ends, or no leader is elected: the others are needed then.
func (s *sandboxHost) serveAlone(ctx context.Context, members []*plan.Member) {
	timed, cancel := context.WithTimeout(ctx, aloneFor)
	defer cancel()
	for _, m := range members {
		if p := s.newest(m); p == nil || p.Ready(timed) != nil {
			return
		}
	}
}
