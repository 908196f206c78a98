package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestSaveBeforeRemoval: a member that is removed is saved first, unless that may cost the majority, it does not
// answer, or the operator wants none. A damaged database that cannot be read does not end the repair.
func TestSaveBeforeRemoval(t *testing.T) {
	const aside, nothing = "its data dir is set aside whole", "accepted nothing that node1 lacks"
	const silent = "it does not answer at http://node2:2379"
	damaged := func(c *fakeCluster) { c.r.plan.Member("node2").Startable = false }
	blocked := func(c *fakeCluster) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
		c.r.backup = filepath.Join(file, "backup.db")
	}
	for _, tc := range []struct {
		name       string
		n          int
		set        func(c *fakeCluster)
		begin, end string
		asked      bool // for a snapshot
		err        string
	}{
		{"it is sound", 3, func(*fakeCluster) {}, "backup.node2.db, 36 B", nothing, true, ""},
		{"it is damaged", 3, damaged, "backup.node2.db, 36 B", nothing, true, ""},
		{"copies", 3, func(c *fakeCluster) { c.r.sandbox = true }, "not needed: ",
			"the source stays as it is", false, ""},
		{"it is down", 3, func(c *fakeCluster) { c.set(2, false) }, silent + ": nothing is saved, ", aside,
			false, ""},
		{"it refuses the user", 3, func(c *fakeCluster) {
			c.locked = map[string]error{"node2": rpctypes.ErrAuthFailed}
		}, "it refuses the login: " + rpctypes.ErrAuthFailed.Error() + ": nothing is saved, ", aside, false, ""},
		{"it ends", 3, func(c *fakeCluster) { c.fragile = 2 }, silent + ": nothing is saved, " + aside +
			" (no snapshot could be taken: ", aside + ")", true, ""},
		{"none is wanted", 3, func(c *fakeCluster) { c.r.live.SkipSaves = true },
			"no snapshot is taken, as was asked for; ", nothing, false, ""},
		{"one of two", 2, func(*fakeCluster) {}, "backup.node2.db, 36 B", nothing, true, ""},
		{"one of two is damaged", 2, damaged, "no snapshot is taken: reading a damaged database may end the server, " +
			"and without node2 1 of 2 voters would serve, 2 are needed; " + aside, nothing, false, ""},
		{"no file can be written", 3, blocked, "", "", false, "not a directory"},
		{"nor one of a damaged database", 3, func(c *fakeCluster) { damaged(c); blocked(c) },
			"no snapshot could be taken: ", nothing, false, ""},
	} {
		c := newFake(t, fakePlan(t, tc.n, "node2"))
		tc.set(c)
		detail, err := doSave(t.Context(), c.r, &plan.Step{ID: "save", Member: "node2"})
		wantError(t, tc.name, err, tc.err)
		if !strings.HasPrefix(detail, tc.begin) || !strings.HasSuffix(detail, tc.end) ||
			slices.Contains(c.snapshots, "2") != tc.asked {
			t.Errorf("%s: %q, snapshots of %q", tc.name, detail, c.snapshots)
		}
	}
}

// TestPresent: which members the cluster must have at the end. Clones keep the members and have no standby; else the
// standby takes the place of the member. In a sandbox a member that stays and has no copy is elsewhere.
func TestPresent(t *testing.T) {
	p := fakePlan(t, 7, "node2")
	for name, set := range map[string]func(m *plan.Member){
		"node3": func(m *plan.Member) { m.Action = plan.Remove },
		"node4": func(m *plan.Member) { m.Action = plan.Retire },
		"node5": func(m *plan.Member) { m.Source = "" },
		"node6": func(m *plan.Member) { m.Source, m.Action = "", plan.Join },
	} {
		set(p.Member(name))
	}
	p.Member("node2").Standby = "node9"
	p.Members = append(p.Members, plan.Member{Name: "node9", Action: plan.StandIn, For: "node2"})
	for _, tc := range []struct {
		clones, sandbox bool
		want            []string
	}{
		{false, false, []string{"node1", "node5", "node6", "node7", "node9"}},
		{false, true, []string{"node1", "node6", "node7", "node9"}},
		{true, true, []string{"node1", "node2", "node6", "node7"}},
	} {
		cl := &cluster{runState: &runState{plan: p}, clones: tc.clones, sandbox: tc.sandbox}
		if d := cmp.Diff(tc.want, namesOf(cl.present())); d != "" {
			t.Errorf("clones %v, sandbox %v (-want +got):\n%s", tc.clones, tc.sandbox, d)
		}
	}
}

// checkOf is the check of a fake cluster that lists its members by itself.
func checkOf(t *testing.T, c *fakeCluster) *liveCheck {
	t.Helper()
	f := newLiveHost(t.Context(), &LiveOptions{}, "plan.yaml")
	f.runBy(c.r)
	return &liveCheck{liveHost: f}
}

// TestConfirm: a person who does every step is asked once before a run begins, and not when it continues. One who says
// no has changed nothing.
func TestConfirm(t *testing.T) {
	broken := errors.New("no terminal")
	for name, tc := range map[string]struct {
		hook    string
		resumed bool
		answer  error
		asked   bool
		err     string
	}{
		"begin":         {"", false, nil, true, ""},
		"continue":      {"", true, nil, false, ""},
		"hooks":         {"true", false, nil, false, ""},
		"the answer no": {"", false, ErrStopped, true, "the operator stopped here before the first step"},
		"no answer":     {"", false, broken, true, "no terminal"},
	} {
		f, asked := checkOf(t, newFake(t, fakePlan(t, 3, "node2"))), false
		f.o.HookStop = tc.hook
		f.o.Prompt = func(context.Context, []string) error { asked = true; return tc.answer }
		err := f.confirm(t.Context(), tc.resumed)
		wantError(t, name, err, tc.err)
		if asked != tc.asked || errors.Is(tc.answer, broken) && !errors.Is(err, broken) {
			t.Errorf("%s: asked %v, %v", name, asked, err)
		}
		if errors.Is(tc.answer, ErrStopped) {
			wantRefusal(t, err)
		}
	}
}

// TestListedMembers: before the first step every member of the plan is listed that should be, and no other one. A run
// that continues has removed some, and added some at known peer URLs.
func TestListedMembers(t *testing.T) {
	missing := func(a plan.Action) func(c *fakeCluster) {
		return func(c *fakeCluster) {
			c.r.plan.Member("node2").Action, c.list = a, slices.Delete(c.list, 1, 2)
		}
	}
	for _, tc := range []struct {
		name    string
		resumed bool
		set     func(c *fakeCluster)
		err     string
	}{
		{"all", false, func(*fakeCluster) {}, ""},
		{"one is missing", false, missing(plan.Replace), "member node2 (2) of the plan is not listed"},
		{"one was removed before", true, missing(plan.Replace), ""},
		{"one is retired", false, missing(plan.Retire), ""},
		{"one has to join", false, missing(plan.Join), ""},
		{"a standby", false, missing(plan.StandIn), ""},
		{"a new ID", false, func(c *fakeCluster) { c.list[1].ID = 0x77 }, "member node2 (2) of the plan is not listed"},
		{"a new ID at its peer URL", true, func(c *fakeCluster) { c.list[1].ID = 0x77 }, ""},
		{"a new ID of a member that joins", false, func(c *fakeCluster) {
			missing(plan.Join)(c)
			c.list = append(c.list, &etcdserverpb.Member{ID: 0x77, PeerURLs: []string{"http://node2:2380"}})
		}, "the running cluster has a member 77 that the plan does not know"},
		{"another member", true, func(c *fakeCluster) { c.list = append(c.list, &etcdserverpb.Member{ID: 0x77}) },
			"the running cluster has a member 77 that the plan does not know"},
	} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		tc.set(c)
		err := checkOf(t, c).check(t.Context(), tc.resumed)
		wantError(t, tc.name, err, tc.err)
		if err != nil {
			wantRefusal(t, err)
		}
	}
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.list[1].ClientURLs, c.list[2].ID = []string{"http://b:1", "http://b:2"}, 3
	f := checkOf(t, c)
	if err := f.check(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"node2": "http://b:1"}, f.where.listed); d != "" {
		t.Errorf("listed client URLs (-want +got):\n%s", d)
	}
}

// TestNothingIsStartedUnderALeader: while the cluster has a leader, members that are down are started in the order of
// the plan, not ahead of the checks.
func TestNothingIsStartedUnderALeader(t *testing.T) {
	r := newLiveRun(t, 3)
	r.p.Member("node3").Action = plan.Start
	if err := r.p.LayOut(); err != nil {
		t.Fatal(err)
	}
	r.c.r.steps, r.c.r.limits = r.p.Way(plan.Live).Steps, hasty
	r.c.set(3, false)
	r.s.stop("node3")
	f := &liveCheck{liveHost: r.s.live()}
	if err := f.meet(t.Context(), false); err != nil || f.woken || len(r.c.acts) > 0 {
		t.Errorf("%v, woken %v, acts %q", err, f.woken, r.c.acts)
	}
}

// withoutLeader is a live run of three members, two of which are stopped; the plan starts node3.
func withoutLeader(t *testing.T) *liveRun {
	t.Helper()
	r := newLiveRun(t, 3)
	r.p.Member("node3").Action = plan.Start
	if err := r.p.LayOut(); err != nil {
		t.Fatal(err)
	}
	for id, name := range map[uint64]string{2: "node2", 3: "node3"} {
		r.c.set(id, false)
		r.s.stop(name)
	}
	return r
}

// TestAskedOnce: a person who agreed to start members of a cluster without a leader is not asked again after the
// checks.
func TestAskedOnce(t *testing.T) {
	r := withoutLeader(t)
	asked, enough := 0, errors.New("enough")
	r.o.Live.HostActions = nil
	r.o.Live.Prompt = func(ctx context.Context, text []string) error {
		switch {
		case strings.HasSuffix(text[len(text)-1], "begin?"):
			asked++
			return nil
		case strings.HasPrefix(text[0], "start node3"):
			return r.s.act(ctx, HostStep{Action: "start", Member: r.p.Member("node3")})
		}
		return enough
	}
	if _, err := r.apply(t); !errors.Is(err, enough) || asked != 1 || !slices.Contains(r.c.acts, "start node3") {
		t.Errorf("asked %d times, %v; acts %q", asked, err, r.c.acts)
	}
}

// TestTokenOfAnOldAuthRevision: a token that was granted before a change of auth is refused like one that has expired:
// the next try logs in again. Other errors stay as they are.
func TestTokenOfAnOldAuthRevision(t *testing.T) {
	for err, again := range map[error]bool{rpctypes.ErrAuthOldRevision: true, rpctypes.ErrInvalidAuthToken: true,
		rpctypes.ErrPermissionDenied: false, nil: false} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		got := c.r.tokenChecked(c.r.plan.Member("node2"), err)
		var later notYet
		if errors.As(got, &later) != again || slices.Contains(c.forgot, "node2") != again || !again && got != err {
			t.Errorf("%v: %v, closed clients of %q", err, got, c.forgot)
		}
	}
}

// TestChangesUpToARevision: changes after the last revision that was asked for are not read.
func TestChangesUpToARevision(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	for _, rev := range []int64{11, 12, 14} {
		c.wrote(2, rev, "k", "v")
	}
	for to, want := range map[int64][]int64{11: {11}, 12: {11, 12}, 13: {11, 12}, 14: {11, 12, 14}, 10: nil} {
		var got []int64
		gap, err := c.r.changes(t.Context(), c.r.plan.Member("node2"), 11, to, func(e *clientv3.Event) error {
			got = append(got, e.Kv.ModRevision)
			return nil
		})
		if err != nil || gap != 0 || !slices.Equal(got, want) {
			t.Errorf("up to %d: %d, want %d; gap %d, %v", to, got, want, gap, err)
		}
	}
}
