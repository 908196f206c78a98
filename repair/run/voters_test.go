package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

func namesOf(members []*plan.Member) (out []string) {
	for _, m := range members {
		out = append(out, m.Name)
	}
	return out
}

// TestSpeakers: the best member is asked for the member list first, then voters that remain, and a replaced one once it
// is a voter again. Learners do not answer that.
func TestSpeakers(t *testing.T) {
	p := fakePlan(t, 7, "node1", "node2")
	p.Best.Name, p.Members[0].Action, p.Members[6].Action = "node7", plan.Replace, plan.Best
	p.Member("node4").Action, p.Member("node5").Action = plan.Start, plan.Restart
	p.Member("node6").Learner = true
	c := newFake(t, p)
	if d := cmp.Diff([]string{"node7", "node3", "node4", "node5"}, namesOf(c.r.speakers())); d != "" {
		t.Errorf("at the beginning (-want +got):\n%s", d)
	}
	step := c.r.stepOf(plan.StepPromote, "node2")
	if step == nil {
		t.Fatal("node2 is not promoted by the plan")
	}
	if err := c.r.j.write(Record{State: StateDone, Step: step.ID}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"node7", "node2", "node3", "node4", "node5"}, namesOf(c.r.speakers())); d != "" {
		t.Errorf("node2 was promoted (-want +got):\n%s", d)
	}
	p.Best.Name = "node4"
	if d := cmp.Diff([]string{"node4", "node2", "node3", "node5"}, namesOf(c.r.speakers())); d != "" {
		t.Errorf("the best member is one that remains (-want +got):\n%s", d)
	}
}

// TestMemberListNow: the list is confirmed if a majority answers through any member. Without a majority it is what one
// member has, and the reason is given. A member that is down is named once.
func TestMemberListNow(t *testing.T) {
	const late = ": context deadline exceeded"
	for name, tc := range map[string]struct {
		down             []uint64
		listed           bool
		unconfirmed, err string
	}{
		"all run":                {nil, true, "", ""},
		"the best one is down":   {[]uint64{1}, true, "", ""},
		"the best one runs":      {[]uint64{2, 3}, true, "node1" + late, ""},
		"another one runs":       {[]uint64{1, 2}, true, "node3" + late + "; node1 does not answer", ""},
		"only a bad one runs":    {[]uint64{1, 3}, false, "", "node1 does not answer; node3 does not answer"},
		"none of them is up now": {[]uint64{1, 2, 3}, false, "", "node1 does not answer; node3 does not answer"},
	} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		c.r.limits.call = 20 * time.Millisecond
		for _, id := range tc.down {
			c.set(id, false)
		}
		list, unconfirmed, err := c.r.listNow(t.Context())
		if (len(list) == 3) != tc.listed || unconfirmed != tc.unconfirmed || (err == nil) != tc.listed ||
			err != nil && err.Error() != tc.err {
			t.Errorf("%s: %d listed, unconfirmed %q, %v", name, len(list), unconfirmed, err)
		}
		h := c.r.count(t.Context())
		if h.problem != tc.err || h.unconfirmed != tc.unconfirmed || tc.listed != (len(h.voters) == 3) {
			t.Errorf("%s: %+v", name, h)
		}
	}
	c := newFake(t, fakePlan(t, 3, "node2"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.r.listNow(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was ended: %v", err)
	}
	c.list[2].IsLearner = true
	if h := c.r.count(t.Context()); len(h.voters) != 2 || h.has(3) {
		t.Errorf("a learner votes: %+v", h)
	}
}

// TestRuleOfASteps: what a step needs depends on its kind, on what becomes of the member, and on the cluster.
func TestRuleOfASteps(t *testing.T) {
	for _, tc := range []struct {
		name    string
		n       int
		down    []uint64
		need    need
		kind    plan.StepKind
		member  string
		set     func(c *fakeCluster)
		allowed bool
		caution string
	}{
		{"stop one that comes back", 2, nil, theOthers, plan.StepStop, "node2", func(c *fakeCluster) {
			c.r.plan.Member("node2").Action = plan.Restart
		}, true, "the cluster has 2 voters: it does not serve while node2 restarts"},
		{"stop one that leaves", 2, nil, theOthers, plan.StepStop, "node2", nil, false, ""},
		{"save one that comes back", 2, nil, theOthers, plan.StepSave, "node2", func(c *fakeCluster) {
			c.r.plan.Member("node2").Action = plan.Restart
		}, false, ""},
		{"one that was removed before", 3, []uint64{3}, theOthers, plan.StepStop, "node2", func(c *fakeCluster) {
			c.r.plan.Member("node2").Action = plan.Retire
		}, true, ""},
		{"remove one of two", 2, nil, theOthers, plan.StepRemove, "node2", nil, true, ""},
		{"add a learner", 1, nil, theOthers, plan.StepAdd, "node1", nil, true, ""},
		{"add a voter", 1, nil, theOthers, plan.StepAdd, "node1", func(c *fakeCluster) {
			c.r.plan.Cluster.Minor = 3
		}, true, "node1 votes as soon as it is added: the cluster decides nothing until it runs"},
		{"decide with two of three", 3, []uint64{3}, aMajority, "", "", nil, true, ""},
		{"all of three", 3, []uint64{3}, everyVoter, "", "", nil, false, ""},
		{"all of three copies", 3, []uint64{3}, everyVoter, "", "",
			func(c *fakeCluster) { c.r.sandbox = true }, true, ""},
	} {
		c := newFake(t, fakePlan(t, tc.n, "node2"))
		for _, id := range tc.down {
			c.set(id, false)
		}
		if tc.set != nil {
			tc.set(c)
		}
		got := c.r.rule(t.Context(), tc.need, tc.kind, c.r.plan.Member(tc.member))
		if got.allowed != tc.allowed || got.caution != tc.caution {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

// TestPatience: a person is asked early, hooks wait as long as the operator said, and copies as long as any step.
func TestPatience(t *testing.T) {
	ask := func(context.Context, []string) error { return nil }
	for name, tc := range map[string]struct {
		live *LiveOptions
		want time.Duration
	}{
		"copies":                  {nil, 2 * time.Second},
		"hooks":                   {&LiveOptions{QuorumWait: time.Minute, HookStop: "true", Prompt: ask}, time.Minute},
		"a person":                {&LiveOptions{QuorumWait: time.Minute, Prompt: ask}, askFirst},
		"a person in a hurry":     {&LiveOptions{QuorumWait: time.Second, Prompt: ask}, time.Second},
		"a program":               {&LiveOptions{QuorumWait: time.Minute}, time.Minute},
		"a program, and a person": {&LiveOptions{QuorumWait: time.Minute, HookStart: "true", Prompt: ask}, time.Minute},
	} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		c.r.live = tc.live
		if got := c.r.patience(); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestAskOn: a person who gives up ends the wait, another error is passed on, and without an error the wait continues.
// Without a person it is over.
func TestAskOn(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	now := &ruling{text: "1 of 3 voters answer", missing: []voter{{name: "node9", why: "no reason"},
		{name: "node3", m: c.r.plan.Member("node3"), why: "it does not answer"}}, need: 1}
	broken := errors.New("no terminal")
	var asked []string
	for _, tc := range []struct{ answer, want error }{{nil, nil}, {broken, broken}, {ErrStopped, errNoMajority}} {
		c.r.live = &LiveOptions{Prompt: func(_ context.Context, text []string) error { asked = text; return tc.answer }}
		err := c.r.askOn(t.Context(), now, time.Minute)
		if !errors.Is(err, tc.want) || !errors.Is(err, tc.answer) || tc.answer == nil && err != nil ||
			errors.Is(err, errNoMajority) != errors.Is(tc.answer, ErrStopped) {
			t.Errorf("the answer is %v: %v", tc.answer, err)
		}
	}
	all := strings.Join(asked, "\n")
	for _, want := range []string{"the step waits: 1 of 3 voters answer",
		"node9: no reason\nnode3: it does not answer",
		"[node3] systemctl start etcd"} {
		if !strings.Contains(all, want) {
			t.Errorf("a person reads %q, and not %q", asked, want)
		}
	}
	if strings.Contains(all, "etcdctl") {
		t.Errorf("a person has to look for what is looked at here: %q", asked)
	}
	for _, live := range []*LiveOptions{nil, {HookStop: "true"}} {
		c.r.live = live
		if err := c.r.askOn(t.Context(), now, 61*time.Second+time.Millisecond); !errors.Is(err, errNoMajority) ||
			!strings.HasSuffix(err.Error(), "after 1m1s: 1 of 3 voters answer; it waits for 1 of node9 (no reason), "+
				"node3 (it does not answer)") {
			t.Errorf("%v", err)
		}
	}
}

// TestLacks: a step that failed is repeated if it lacked voters, and not if a person ended it or contents differ.
func TestLacks(t *testing.T) {
	other := errors.New("another reason")
	for _, tc := range []struct {
		name string
		err  error
		step action
		down bool
		set  func(c *fakeCluster)
		want need
	}{
		{"no majority", other, action{needs: aMajority}, true, nil, aMajority},
		{"no majority for the others", other, action{needs: theOthers}, true, nil, aMajority},
		{"not all of them", other, action{needs: everyVoter}, true, nil, everyVoter},
		{"a majority", other, action{needs: aMajority}, false, nil, noVoters},
		{"one that needs none", other, action{needs: noVoters}, true, nil, noVoters},
		{"not guarded", other, action{needs: aMajority}, true, func(c *fakeCluster) { c.r.guarded = false }, noVoters},
		{"a voter is not connected", errNotConnected, action{needs: theOthers}, false, nil, everyVoter},
		{"ended by a person", ErrStopped, action{needs: aMajority}, true, nil, noVoters},
		{"waited for long", errNoMajority, action{needs: aMajority}, true, nil, noVoters},
		{"contents differ", errHashes, action{needs: aMajority}, true, nil, noVoters},
	} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		c.r.limits.call = 20 * time.Millisecond
		if tc.set != nil {
			tc.set(c)
		}
		c.set(2, !tc.down)
		c.set(3, !tc.down)
		if got := c.r.lacks(t.Context(), tc.step, tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestQuorumSays: the operator reads once what a step waits for, that it continues, and what to know of a step that is
// allowed. A step that needs no voters does not wait.
func TestQuorumSays(t *testing.T) {
	c := newFake(t, fakePlan(t, 2, "node2"))
	c.r.plan.Member("node2").Action = plan.Restart
	var notices []string
	c.r.live.Notice = func(s string) {
		if notices = append(notices, s); len(notices) == 1 {
			c.set(1, true)
		}
	}
	c.set(1, false)
	for range 2 {
		if err := c.r.quorum(t.Context(), theOthers, plan.StepStop, c.r.plan.Member("node2")); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.r.quorum(t.Context(), aMajority, "", nil); err != nil {
		t.Fatal(err)
	}
	const caution = "the cluster has 2 voters: it does not serve while node2 restarts"
	if len(notices) != 4 || !slices.Equal(notices[1:], []string{"a majority serves again: the repair continues",
		caution, caution}) {
		t.Errorf("%q", notices)
	}
	c.set(1, false)
	c.r.live.QuorumWait, c.r.live.HostActions = 0, nil
	asked := 0
	notices = []string{""} // what is said from here on is not the first
	c.r.live.Prompt = func(context.Context, []string) error {
		if asked++; asked == 3 {
			c.set(1, true)
		}
		return nil
	}
	if err := c.r.quorum(t.Context(), aMajority, "", nil); err != nil || asked != 3 || len(notices) != 3 {
		t.Errorf("the same obstacle is named again: %q, %v", notices, err)
	}
	c.set(1, false)
	if err := c.r.quorum(t.Context(), noVoters, "", nil); err != nil {
		t.Errorf("it needs no voters: %v", err)
	}
	c.r.guarded = false
	if err := c.r.quorum(t.Context(), everyVoter, "", nil); err != nil {
		t.Errorf("the cluster does not serve meanwhile: %v", err)
	}
	c.r.guarded = true
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.r.quorum(ended, aMajority, "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was ended: %v", err)
	}
}
