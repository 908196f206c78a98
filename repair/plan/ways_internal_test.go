package plan

import (
	"strings"
	"testing"
)

// TestWaysBesidesARebuildLoseEntries: what a plan gives up is computed for the database that logs continue. A way that
// keeps the best member's own database is not possible then, whether or not enough voters can be started.
func TestWaysBesidesARebuildLoseEntries(t *testing.T) {
	for startable, quorum := range map[int]int{1: 2, 2: 2} {
		for _, x := range []*Rebuilt{nil, {Base: "node3", Continues: true, Logs: []string{"node1"}, Promise: &Promise{}}} {
			p := &Plan{Rebuilt: x, Best: Choice{Name: "node3"}, Cluster: Cluster{Voters: 3, Quorum: quorum,
				Startable: startable}, Members: []Member{
				{Name: "node1", ID: 1, Source: "node1", Action: Replace},
				{Name: "node3", ID: 3, Source: "node3", Action: Best, Startable: true}}}
			pr := &procedures{roster: &roster{p: p}}
			possible := 0
			for _, w := range []Way{pr.liveWay(), pr.forceWay(), pr.reseedWay()} {
				if w.Possible {
					possible++
				}
				if x != nil && (w.Possible || strings.Contains(w.Why, "only logs hold") == strings.Contains(w.Why, "needed")) {
					t.Errorf("%d startable, %s: possible %t, %s", startable, w.Mode, w.Possible, w.Why)
				}
			}
			if x == nil && possible != 2 {
				t.Errorf("%d startable, no rebuilt database: %d ways are possible, want 2", startable, possible)
			}
		}
	}
}
