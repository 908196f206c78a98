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
	if old == nil || r.running(ctx, old) {
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
