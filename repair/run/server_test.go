package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestWithoutServer: where no server can run copies with members that only bucket members lists, the refusal names the
// mode that needs none, if that mode is possible. Every other error is passed on unchanged.
func TestWithoutServer(t *testing.T) {
	refused := refusal.New("install one", "no server")
	broken := errors.New("broken")
	clone := func(possible bool) []plan.Way { return []plan.Way{{Mode: plan.Clone, Possible: possible}} }
	for name, c := range map[string]struct {
		zombie bool
		ways   []plan.Way
		err    error
		more   bool
	}{
		"clone is possible":      {true, clone(true), refused, true},
		"clone is not possible":  {true, clone(false), refused, false},
		"no such mode":           {true, nil, refused, false},
		"every member is raft's": {false, clone(true), refused, false},
		"another error":          {true, clone(true), broken, false},
	} {
		p := fakePlan(t, 3)
		p.Ways = c.ways
		if c.zombie {
			p.Members[2].Action, p.Members[2].Obstacle = plan.Remove, plan.ObstacleBucketOnly
		}
		err := (&session{plan: p}).withoutServer(c.err)
		var r *refusal.Error
		if !c.more && (!errors.Is(err, c.err) || strings.Contains(err.Error(), "clone")) {
			t.Errorf("%s: %v", name, err)
		}
		if c.more && (!errors.As(err, &r) || !strings.HasPrefix(r.Hint, "install one; --mode clone") ||
			r.Reason != "no server" || strings.Contains(refused.Error(), "clone")) {
			t.Errorf("%s: %+v", name, err)
		}
	}
}
