package run

import (
	"context"
	"fmt"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// makeRoom removes a member that is down before its standby is added: etcd adds no member while a voter is not
// connected.
func (r *runner) makeRoom(ctx context.Context, s *plan.Step, m *plan.Member) (string, error) {
	if m.Action != plan.StandIn {
		return "", nil
	}
	old := r.plan.Member(m.For)
	if old == nil || r.host.running(ctx, old) {
		return "", nil
	}
	step := &plan.Step{ID: s.ID, Kind: plan.StepRemove, Member: old.Name}
	if gone, err := removed(ctx, r, step); err != nil || gone {
		return "", err
	}
	if err := r.quorum(ctx, theOthers, plan.StepRemove, old); err != nil {
		return "", err
	}
	if _, err := doRemove(ctx, r, step); err != nil {
		return "", err
	}
	if err := r.note(s.ID, "removed-first:"+old.Name, time.Now().UTC().Format(time.RFC3339Nano)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is down, so it was removed first: etcd adds no member while a voter is not connected; ",
		old.Name), nil
}

// fewer says for how long the cluster had a voter fewer while a member was replaced.
func (r *runner) fewer() []string {
	var out []string
	for i := range r.plan.Members {
		m := &r.plan.Members[i]
		switch {
		case m.Standby != "" && r.stepDone(plan.StepPromote, m.Standby) && r.stepDone(plan.StepRemove, m.Name):
			if from, err := time.Parse(time.RFC3339Nano, r.j.value("removed-first:"+m.Name)); err == nil {
				gap := r.doneAt(plan.StepPromote, m.Standby).Sub(from).Round(time.Millisecond)
				out = append(out, fmt.Sprintf("the cluster had one voter fewer for %v: %s was down and was removed "+
					"before %s was promoted", gap, m.Name, m.Standby))
				continue
			}
			out = append(out, fmt.Sprintf("the cluster had no voter fewer while %s took the place of %s", m.Standby,
				m.Name))
		case m.Action == plan.Replace && r.stepDone(plan.StepPromote, m.Name):
			from, to := r.doneAt(plan.StepRemove, m.Name), r.doneAt(plan.StepPromote, m.Name)
			if stop := r.doneAt(plan.StepStop, m.Name); !stop.IsZero() && stop.Before(from) {
				from = stop
			}
			out = append(out, fmt.Sprintf("the cluster had one voter fewer for %v while %s was replaced, from %s to %s",
				to.Sub(from), m.Name, from.Format("15:04:05"), to.Format("15:04:05 MST")))
		}
	}
	return out
}
