package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/refusal"
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

// TestForced: a forced start drops all members but the best one. Learners are not added again, the others come back
// empty; entries that only they hold are given up. It is refused while a voter's data dir was not seen.
func TestForced(t *testing.T) {
	for name, c := range map[string]struct {
		m       Member
		gone    bool
		want    Action
		refused bool
	}{
		"kept":                  {m: Member{Source: "n1", Action: Keep, Why: "w"}, want: Replace},
		"to be started":         {m: Member{Source: "n1", Action: Start, Why: "w"}, want: Replace},
		"to be restarted":       {m: Member{Source: "n1", Action: Restart, Why: "w"}, want: Replace},
		"replaced":              {m: Member{Source: "n1", Action: Replace}, want: Replace},
		"retired":               {m: Member{Source: "n1", Action: Retire}, want: Retire},
		"a learner":             {m: Member{Source: "n1", Action: Keep, Learner: true, Why: "w"}, want: Remove},
		"a learner not seen":    {m: Member{Action: Keep, Learner: true, Why: "w"}, want: Remove},
		"a learner, removed":    {m: Member{Source: "n1", Action: Remove, Learner: true}, want: Remove},
		"a learner, the best":   {m: Member{Source: "n1", Action: Best, Learner: true}, want: Best},
		"not seen":              {m: Member{Action: Replace}, refused: true},
		"not seen, kept":        {m: Member{Action: Keep}, refused: true},
		"not seen, given up":    {m: Member{Action: Replace}, gone: true, want: Replace},
		"not seen, but removed": {m: Member{Action: Remove}, want: Remove},
		"not seen, but retired": {m: Member{Action: Retire}, want: Retire},
	} {
		c.m.Name, c.m.ID = "n1", 1
		p := &Plan{Best: Choice{Name: "n2"}, Members: []Member{c.m, {Name: "n2", ID: 2, Source: "n2", Action: Best}}}
		p.Lost.CommittedEntries, p.Lost.AfterEnd, p.Lost.Awaited = 5, 2, 3
		pr := &procedures{roster: &roster{p: p, sources: &sources{}}}
		if c.gone {
			pr.o.Gone = []string{"n1"}
		}
		var refused *refusal.Error
		if err := pr.forced(); c.refused {
			if !errors.As(err, &refused) || len(pr.unseen) != 1 || !strings.Contains(refused.Hint, "--lost n1") ||
				p.Members[0].Action != c.m.Action || p.Lost.Awaited != 3 {
				t.Errorf("%s: %v, %+v", name, err, p.Members[0])
			}
			continue
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := p.Members[0]; got.Action != c.want || p.Members[1].Action != Best ||
			(got.Action != c.m.Action) != (got.Why != c.m.Why) {
			t.Errorf("%s: %s (%s), want %s", name, got.Action, got.Why, c.want)
		}
		if l := p.Lost; l.CommittedEntries != 8 || l.AfterEnd != 5 || l.Awaited != 0 || len(p.Cautions) != 1 {
			t.Errorf("%s: lost %+v, %q", name, l, p.Cautions)
		}
	}
	p := &Plan{Best: Choice{Name: "n1"}, Members: []Member{{Name: "n1", ID: 1, Source: "n1", Action: Best}}}
	if err := (&procedures{roster: &roster{p: p, sources: &sources{}}}).forced(); err != nil || len(p.Cautions) > 0 {
		t.Errorf("nothing is given up: %v, %q", err, p.Cautions)
	}
}

// TestUnclonable: clones restore a cluster if a majority of raft's own list of voters gets one, and none overwrites a
// data dir that was not seen.
func TestUnclonable(t *testing.T) {
	voter := func(name string, a Action) Member { return Member{Name: name, Source: name, Action: a} }
	learner := func(name string, a Action) Member { return Member{Name: name, Source: name, Action: a, Learner: true} }
	zombie := Member{Name: "z", Action: Remove, Obstacle: ObstacleBucketOnly}
	for name, c := range map[string]struct {
		voters  int
		minor   int
		noID    bool
		members []Member
		want    string
	}{
		"all":          {voters: 3, members: []Member{voter("a", Best), voter("b", Keep), voter("c", Replace)}},
		"two of three": {voters: 3, members: []Member{voter("a", Best), voter("b", Keep), voter("c", Remove)}},
		"two of four":  {voters: 4, members: []Member{voter("a", Best), voter("b", Keep)}, want: "3 are needed"},
		"one retired": {voters: 3, members: []Member{voter("a", Best), voter("b", Retire)},
			want: "only 1 of them"},
		"learners do not vote": {voters: 3, members: []Member{voter("a", Best), learner("b", Keep)},
			want: "only 1 of them"},
		"a learner joins": {voters: 1, members: []Member{voter("a", Best), learner("b", Join)},
			want: "joins as a new member"},
		"one joins": {voters: 1, members: []Member{voter("a", Best), voter("b", Join)},
			want: "joins as a new member"},
		"one was not seen": {voters: 3, members: []Member{voter("a", Best), voter("b", Keep), {Name: "c"}},
			want: "of c is not"},
		"one is lost":            {voters: 3, members: []Member{voter("a", Best), voter("b", Keep), {Name: "gone"}}},
		"a learner was not seen": {voters: 1, members: []Member{voter("a", Best), {Name: "c", Learner: true}}},
		"no cluster ID":          {voters: 1, noID: true, members: []Member{voter("a", Best)}, want: "cluster ID"},
		"a zombie that counts":   {voters: 2, minor: 7, members: []Member{voter("a", Best), zombie}},
		"a zombie that does not": {voters: 2, minor: 6, members: []Member{voter("a", Best), zombie},
			want: "only 1 of them"},
	} {
		p := &Plan{Best: Choice{Name: "a"}, Members: c.members, Cluster: Cluster{ID: 5, Voters: c.voters, Minor: c.minor}}
		if c.noID {
			p.Cluster.ID = 0
		}
		pr := &procedures{roster: &roster{p: p, sources: &sources{}, o: Options{Gone: []string{"gone"}}}}
		if got := pr.unclonable(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
