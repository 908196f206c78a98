package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// headcountOf makes voters 1..n of which some do not answer and others answer but do not serve.
func headcountOf(n int, down, sick []uint64) *headcount {
	h := &headcount{}
	for i := range n {
		id := uint64(i + 1)
		v := voter{id: id, name: fmt.Sprintf("node%d", id), answers: true, healthy: true}
		switch {
		case slices.Contains(down, id):
			v.answers, v.healthy, v.why = false, false, "it does not answer"
		case slices.Contains(sick, id):
			v.healthy, v.why = false, "a linearizable read through it fails"
		}
		h.voters = append(h.voters, v)
	}
	return h
}

// TestQuorumRules is the table of what the voters allow.
func TestQuorumRules(t *testing.T) {
	type ids = []uint64
	stop := func(id uint64) func(*headcount) ruling {
		return func(h *headcount) ruling { return h.mayStop("the member", id, false) }
	}
	restart := func(id uint64) func(*headcount) ruling {
		return func(h *headcount) ruling { return h.mayStop("the member", id, true) }
	}
	remove := func(id uint64) func(*headcount) ruling {
		return func(h *headcount) ruling { return h.mayRemove("the member", id) }
	}
	learner := func(h *headcount) ruling { return h.mayAdd("the member", false) }
	voting := func(h *headcount) ruling { return h.mayAdd("the member", true) }
	all := func(h *headcount) ruling { return h.allServe() }
	decide := func(h *headcount) ruling { return h.decides() }
	for _, tc := range []struct {
		name       string
		voters     int
		down, sick ids
		ask        func(*headcount) ruling
		allowed    bool
		waitsFor   string
	}{
		{"stop one of three", 3, nil, nil, stop(2), true, ""},
		{"stop one while another is down", 3, ids{3}, nil, stop(2), false, "node3"},
		{"stop one while another does not serve", 3, nil, ids{3}, stop(2), false, "node3"},
		{"stop the one that is sick", 3, nil, ids{2}, stop(2), true, ""},
		{"stop one that does not vote", 3, ids{3}, nil, stop(9), true, ""},
		{"stop one of two", 2, nil, nil, stop(2), false, ""},
		{"stop one of four", 4, nil, nil, stop(2), true, ""},
		{"stop one of four while another is down", 4, ids{4}, nil, stop(2), false, "node4"},
		{"stop one of five while another is down", 5, ids{4}, nil, stop(2), true, ""},
		{"stop one of five while two are down", 5, ids{4, 5}, nil, stop(2), false,
			"1 of node4 (it does not answer), node5"},
		{"remove one of three", 3, nil, nil, remove(2), true, ""},
		{"remove one of three that is down", 3, ids{2}, nil, remove(2), true, ""},
		{"remove one while another is down", 3, ids{3}, nil, remove(2), false, "node3"},
		{"remove the stopped one while another is down", 3, ids{2, 3}, nil, remove(2), false,
			"1 of node2 (it does not answer), node3"},
		{"remove one of two", 2, nil, nil, remove(2), true, ""},
		{"remove one of two that is down: the other cannot decide that", 2, ids{2}, nil, remove(2), false, "node2"},
		{"remove one of four while another is down", 4, ids{4}, nil, remove(2), true, ""},
		{"remove one that is not listed", 3, ids{3}, nil, remove(9), true, ""},
		{"restart the only voter", 1, nil, nil, restart(1), true, ""},
		{"restart one of two", 2, nil, nil, restart(2), true, ""},
		{"restart one while another is down", 3, ids{3}, nil, restart(2), false, "node3"},
		{"add a learner to two", 2, nil, nil, learner, true, ""},
		{"add a learner while one of two is down", 2, ids{2}, nil, learner, false, "node2"},
		{"add a voter to two", 2, nil, nil, voting, true, ""},
		{"add a voter to one", 1, nil, nil, voting, true, ""},
		{"add a voter to three while one is down", 3, ids{3}, nil, voting, false, "node3"},
		{"all serve", 3, nil, nil, all, true, ""},
		{"all but one answer", 3, ids{3}, nil, all, false, "node3"},
		{"all but one serve", 3, nil, ids{3}, all, false, "node3"},
		{"too few answer for all to serve", 3, ids{2, 3}, nil, all, false, "1 of node2 (it does not answer), node3"},
		{"decide with all", 3, nil, nil, decide, true, ""},
		{"decide with two of three", 3, ids{3}, nil, decide, true, ""},
		{"decide with those that do not serve", 3, nil, ids{1, 2, 3}, decide, true, ""},
		{"decide with one of three", 3, ids{2, 3}, nil, decide, false, "1 of node2 (it does not answer), node3"},
		{"decide with two of four", 4, ids{3, 4}, nil, decide, false, "1 of node3 (it does not answer), node4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.ask(headcountOf(tc.voters, tc.down, tc.sick))
			if got.allowed != tc.allowed {
				t.Errorf("allowed %v, want %v: %s", got.allowed, tc.allowed, got.waits())
			}
			if !strings.Contains(got.waits(), tc.waitsFor) {
				t.Errorf("%q does not say that it waits for %q", got.waits(), tc.waitsFor)
			}
		})
	}
	h := headcountOf(3, nil, nil)
	h.unconfirmed = "node1: its clock is wrong"
	now := h.decides()
	if want := "3 of 3 voters answer, but no majority confirms the member list: " + h.unconfirmed; now.waits() != want {
		t.Errorf("the wait says %q, want %q", now.waits(), want)
	}
	if h.mayStop("the member", 2, false).allowed || h.mayRemove("the member", 2).allowed {
		t.Error("a member list that no majority confirmed is good enough")
	}
	if (&headcount{problem: "nobody answers"}).mayStop("the member", 2, false).allowed {
		t.Error("a member is stopped although nobody says who votes")
	}
}

// TestNoLeader: voters that run and know no leader wait for the others, so the others are named. Nothing is removed
// from the list of such a cluster, also not a member that someone else has added. If enough of them run an election is
// under way.
func TestNoLeader(t *testing.T) {
	h := headcountOf(4, []uint64{1, 2, 3, 4}, nil)
	h.voters[0].why, h.voters[0].leaderless, h.voters[0].runs = "it knows no leader", true, true
	h.voters[2].why, h.voters[2].leaderless, h.voters[2].runs = "it knows no leader", true, true
	h.voters[3].why, h.voters[3].unwanted = "the plan does not know it", "if 4 is not wanted: remove it"
	now := h.mayRemove("node2", 2)
	if want := "2 of 4 voters run, 3 are needed to elect a leader; it waits for 1 of node2 (it does not answer), " +
		"node4 (the plan does not know it; once there is a leader, if 4 is not wanted: remove it)"; now.waits() != want {
		t.Errorf("%s\nwant %s", now.waits(), want)
	}
	h.voters[1].why, h.voters[1].leaderless = "it knows no leader", true
	now = h.decides()
	if got := now.waits(); now.allowed || !strings.HasPrefix(got, "0 of 4 voters answer, 3 are needed to decide "+
		"anything; it waits for 3 of node1 (it knows no leader)") || !strings.Contains(got, "it; if 4 is not wanted: remove it)") {
		t.Errorf("%s", got)
	}
	now = ruling{missing: h.voters[3:]}
	if got := now.bringBack(nil); len(got) != 1 || got[0] != "node4: the plan does not know it; if 4 is not wanted: "+
		"remove it" {
		t.Errorf("%q", got)
	}
}

// TestExamine: a voter counts if it runs, is the member that is listed, of this cluster, and knows a leader.
func TestExamine(t *testing.T) {
	for why, set := range map[string]func(*fakeCluster, *voter){
		"":                          func(*fakeCluster, *voter) {},
		"the plan does not know it": func(_ *fakeCluster, v *voter) { v.m = nil },
		"it does not answer at http://node2:2379": func(c *fakeCluster, _ *voter) { c.set(2, false) },
		"member 2 answers in its place":           func(_ *fakeCluster, v *voter) { v.id = 9 },
		"it belongs to cluster 9":                 func(c *fakeCluster, _ *voter) { c.of(2).cluster = 9 },
		"it is a learner still":                   func(c *fakeCluster, _ *voter) { c.list[1].IsLearner = true },
		"it knows no leader": func(c *fakeCluster, _ *voter) {
			c.set(1, false)
			c.set(3, false)
		},
	} {
		c := newFake(t, fakePlan(t, 3, "node3"))
		v := &voter{id: 2, name: "node2", m: c.r.plan.Member("node2")}
		set(c, v)
		c.r.examine(t.Context(), v)
		if v.leaderless != (why == "it knows no leader") {
			t.Errorf("%q: leaderless %v", why, v.leaderless)
		}
		if v.why != why || v.answers != (why == "") || v.healthy != (why == "") {
			t.Errorf("%q, want %q: %+v", v.why, why, v)
		}
	}
}

// TestOtherLearner: a learner that this run did not add means that someone else changes the cluster. A best member that
// is a learner is not asked about it.
func TestOtherLearner(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node3"))
	if err := c.r.noOtherLearner(t.Context(), c.r.plan.Member("node2")); err != nil {
		t.Error(err)
	}
	c.list[2].IsLearner = true
	if err := c.r.noOtherLearner(t.Context(), c.r.plan.Member("node2")); err == nil ||
		!strings.Contains(err.Error(), "member 3 is a learner") ||
		!strings.Contains(err.Error(), "etcdctl --endpoints http://node1:2379 member remove 3") {
		t.Errorf("a learner: %v", err)
	}
	if m := c.r.queryMember(); m.Name != "node1" {
		t.Errorf("%s is asked", m.Name)
	}
	c.r.plan.Members[0].Learner, c.r.plan.Members[1].Learner = true, true
	if m := c.r.queryMember(); m.Name != "node3" {
		t.Errorf("%s is asked", m.Name)
	}
	c.r.plan.Members[2].Learner = true
	if m := c.r.queryMember(); m.Name != "node1" {
		t.Errorf("%s is asked", m.Name)
	}
}

func TestFakeRepair(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5} {
		c := newFake(t, fakePlan(t, n, "node2"))
		if err := c.r.run(t.Context()); err != nil || len(c.lost) > 0 {
			t.Errorf("%d voters: %v, the majority was lost by %q; %q", n, err, c.lost, c.acts)
		}
		if len(c.list) != n || !slices.Contains(c.snapshots, "2") {
			t.Errorf("%d members are listed, snapshots of %q", len(c.list), c.snapshots)
		}
	}
}

// TestStopWaitsForKeptVoter: a kept voter that is down keeps the tool from stopping a second one until it is back.
func TestStopWaitsForKeptVoter(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.set(3, false)
	var notices []string
	c.r.live.Notice = func(s string) {
		if notices = append(notices, s); len(notices) == 1 {
			if slices.Contains(c.acts, "stop node2") {
				t.Error("node2 was stopped")
			}
			c.set(3, true)
		}
	}
	if err := c.r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.lost) > 0 || len(notices) < 2 ||
		!strings.Contains(notices[0], "without node2 1 of 3 voters would serve, 2 are needed; it waits for node3 (it "+
			"does not answer at http://node3:2379)") {
		t.Errorf("lost by %q; notices %q", c.lost, notices)
	}
}

// TestGiveUpWaiting: a run without a person gives up after its time, one with a person when that says so; the step has
// changed nothing.
func TestGiveUpWaiting(t *testing.T) {
	for _, asked := range []bool{false, true} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		c.set(3, false)
		c.r.live.QuorumWait = 20 * time.Millisecond
		var text []string
		if asked {
			c.r.live.HostActions = nil
			c.r.live.Prompt = func(_ context.Context, s []string) error { text = s; return ErrStopped }
		}
		err := c.r.run(t.Context())
		var u *UnfinishedError
		if !errors.As(err, &u) || !errors.Is(err, errNoMajority) || errors.Is(err, ErrStopped) != asked ||
			!strings.Contains(u.Step, "save-node2") {
			t.Errorf("asked %v: %v", asked, err)
		}
		if slices.ContainsFunc(c.acts, func(a string) bool { return strings.Contains(a, "node2") }) {
			t.Errorf("asked %v: %q", asked, c.acts)
		}
		if all := strings.Join(text, "\n"); asked && (!strings.Contains(all, "[node3] systemctl start etcd") ||
			strings.HasSuffix(all, "?")) {
			t.Errorf("a person is asked %q", all)
		}
		c.set(3, true)
		if err := c.r.run(t.Context()); err != nil || len(c.lost) > 0 {
			t.Errorf("the same run does not go on: %v, %q", err, c.lost)
		}
	}
}

// TestKeptVoterDiesBetweenSteps: a kept voter ends at each point of the journal, and comes back when the tool says that
// it waits for it.
func TestKeptVoterDiesBetweenSteps(t *testing.T) {
	ids := StepIDs(newFake(t, fakePlan(t, 3, "node2")).r.plan, plan.Live)
	for _, id := range ids {
		for _, state := range []State{StateBegin, StateDone} {
			t.Run(string(state)+" "+id, func(t *testing.T) {
				t.Parallel()
				c := newFake(t, fakePlan(t, 3, "node2"))
				killed := false
				c.journal(t, filepath.Join(t.TempDir(), "plan.yaml"), func(r Record, flushed bool) {
					if flushed && r.State == state && r.Step == id && !killed {
						killed = true
						c.set(3, false)
					}
				})
				c.r.live.Notice = func(s string) {
					if strings.HasPrefix(s, "waiting: ") && strings.Contains(s, "node3") {
						c.set(3, true)
					}
				}
				if id == ids[len(ids)-1] { // nothing is decided after the proof began: it waits for the member itself
					time.AfterFunc(300*time.Millisecond, func() { c.set(3, true) })
				}
				if err := c.r.run(t.Context()); err != nil || len(c.lost) > 0 || !killed {
					t.Errorf("killed %v: %v; lost by %q, %q", killed, err, c.lost, c.acts)
				}
			})
		}
	}
}

// TestRandomKills: members that stay end and come back at random points of random plans, never so many that the cluster
// stops deciding. The tool never takes the majority away.
func TestRandomKills(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomKills(t, seed)
		})
	}
}

func randomKills(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	n := 3 + rnd.IntN(4)
	bad := []string{"node2", "node3"}[:1+rnd.IntN(2)]
	p := fakePlan(t, n, bad...)
	p.Members[1].Startable = rnd.IntN(3) > 0
	if !p.Members[1].Startable {
		p.Cluster.Startable--
	}
	c := newFake(t, p)
	if !p.Members[1].Startable {
		c.set(2, rnd.IntN(2) > 0)
	}
	if rnd.IntN(3) == 0 {
		c.fragile = 2
	}
	toggle := func(string) {
		id := uint64(4 + rnd.IntN(max(1, n-3)))
		c.mu.Lock()
		defer c.mu.Unlock()
		if id > uint64(n) || !c.decides() {
			return
		}
		if c.up[id] = !c.up[id]; !c.decides() {
			c.up[id] = true
		}
	}
	c.journal(t, filepath.Join(t.TempDir(), "plan.yaml"), func(r Record, _ bool) { toggle(string(r.State)) })
	c.r.live.Notice = func(s string) {
		if strings.HasPrefix(s, "waiting: ") {
			for id := 4; id <= n; id++ {
				c.set(uint64(id), true)
			}
		}
	}
	err := c.r.run(t.Context())
	// what is down when the proof is made, or a member is added, ends a run
	for try := 0; err != nil && try < 5; try++ {
		for id := 4; id <= n; id++ {
			c.set(uint64(id), true)
		}
		err = c.r.run(t.Context())
	}
	if err != nil || len(c.lost) > 0 {
		t.Errorf("%d members, bad %q: %v; the majority was lost by %q in %q", n, bad, err, c.lost, c.acts)
	}
	if _, err := os.Stat(c.r.backup); err != nil {
		t.Error(err)
	}
}
