package plan_test

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestSequence: the steps of a plan, in order. A member is asked for what it accepted before it is removed. Only a
// cluster with several voters has a leader to move, and only members that come back need the log to advance.
func TestSequence(t *testing.T) {
	best := plan.Member{Name: "node1", ID: 1, Source: "node1", Action: plan.Best, Startable: true}
	member := func(name string, id uint64, action plan.Action, startable bool) plan.Member {
		return plan.Member{Name: name, ID: dumplog.ID(id), Source: name, Action: action, Startable: startable}
	}
	kept := member("node3", 3, plan.Keep, true)
	for name, c := range map[string]struct {
		mode              plan.Mode
		voters, startable int
		members           []plan.Member
		want              string
	}{
		"one of three is replaced": {plan.Live, 3, 3, []plan.Member{best, member("node2", 2, plan.Replace, true), kept},
			"01-backup-node1 02-move-leader-node1 03-advance-log-node1 04-save-node2 05-stop-node2 06-remove-node2 " +
				"07-set-aside-node2 08-add-learner-node2 09-start-empty-node2 10-wait-node2 11-promote-node2 12-verify"},
		"one of three that does not start is replaced": {plan.Live, 3, 3, []plan.Member{best,
			member("node2", 2, plan.Replace, false), kept},
			"01-backup-node1 02-move-leader-node1 03-advance-log-node1 04-save-node2 05-stop-node2 06-remove-node2 " +
				"07-set-aside-node2 08-add-learner-node2 09-start-empty-node2 10-wait-node2 11-promote-node2 12-verify"},
		"one of three is removed": {plan.Live, 3, 3, []plan.Member{best, member("node2", 2, plan.Remove, true), kept},
			"01-backup-node1 02-move-leader-node1 03-save-node2 04-remove-node2 05-verify"},
		"a cluster with one voter": {plan.Live, 1, 1, []plan.Member{best, member("node2", 2, plan.Remove, true)},
			"01-backup-node1 02-save-node2 03-remove-node2 04-verify"},
		"force, the others are replaced": {plan.ForceNewCluster, 3, 1, []plan.Member{best,
			member("node2", 2, plan.Replace, false), member("node3", 3, plan.Replace, true)},
			"01-stop-node1 02-stop-node2 03-stop-node3 04-force-new-node1 05-advance-log-node1 06-set-aside-node2 " +
				"07-add-learner-node2 08-start-empty-node2 09-wait-node2 10-promote-node2 11-set-aside-node3 " +
				"12-add-learner-node3 13-start-empty-node3 14-wait-node3 15-promote-node3 16-verify"},
		"force, the others are gone": {plan.ForceNewCluster, 3, 1, []plan.Member{best,
			member("node2", 2, plan.Remove, false), member("node3", 3, plan.Remove, false)},
			"01-stop-node1 02-force-new-node1 03-verify"},
	} {
		p := &plan.Plan{Mode: c.mode, Best: plan.Choice{Name: "node1", ID: 1}, Members: c.members,
			Cluster: plan.Cluster{ID: 0xc1, Minor: 6, Voters: c.voters, Quorum: c.voters/2 + 1, Startable: c.startable}}
		if err := p.LayOut(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var ids []string
		for _, s := range p.Ways[0].Steps {
			ids = append(ids, s.ID)
		}
		if got := strings.Join(ids, " "); p.Ways[0].Mode != c.mode || got != c.want {
			t.Errorf("%s: %s %s, want %s", name, p.Ways[0].Mode, got, c.want)
		}
	}
}
