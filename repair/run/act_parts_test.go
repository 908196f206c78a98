package run

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/internal/hooks"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// twoCopies runs copies of node1 and node2 alone.
func twoCopies(c *fakeCluster) {
	c.r.some = []*plan.Member{c.r.plan.Member("node1"), c.r.plan.Member("node2")}
}

// drop takes a member out of the member list.
func drop(c *fakeCluster, id uint64) {
	c.list = slices.DeleteFunc(c.list, func(m *etcdserverpb.Member) bool { return m.ID == id })
}

// TestListIsPlanned: which members may be listed, and which learners, while all of them run, in a sandbox with some of
// them, and on clones.
func TestListIsPlanned(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(c *fakeCluster)
		want string // "" is as planned
	}{
		{"all of them", func(*fakeCluster) {}, ""},
		{"one that was to be removed", func(c *fakeCluster) { c.r.plan.Member("node3").Action = plan.Remove },
			"3 is not a member of the plan"},
		{"one that clones remove later", func(c *fakeCluster) {
			c.r.clones, c.r.plan.Member("node3").Action = true, plan.Remove
		}, ""},
		{"one that clones remove later, and is gone", func(c *fakeCluster) {
			c.r.clones, c.r.plan.Member("node3").Action = true, plan.Remove
			drop(c, 3)
		}, ""},
		{"one that was retired", func(c *fakeCluster) {
			c.r.clones, c.r.plan.Member("node3").Action = true, plan.Retire
		}, "3 is not a member of the plan"},
		{"one that is not among the copies", func(c *fakeCluster) { twoCopies(c) }, ""},
		{"one that is not among the copies, and not listed", func(c *fakeCluster) {
			twoCopies(c)
			drop(c, 3)
		}, ""},
		{"one of the copies is missing", func(c *fakeCluster) {
			twoCopies(c)
			drop(c, 2)
		}, "2 members are listed, 3 are planned"},
		{"a learner that is not among the copies", func(c *fakeCluster) {
			twoCopies(c)
			c.r.plan.Member("node3").Learner, c.list[2].IsLearner = true, true
		}, ""},
		{"a voter of the plan is a learner elsewhere", func(c *fakeCluster) {
			twoCopies(c)
			c.list[2].IsLearner = true
		}, "3 is a learner"},
		{"a learner of the plan", func(c *fakeCluster) {
			c.r.plan.Member("node3").Learner, c.list[2].IsLearner = true, true
		}, ""},
		{"its new ID", func(c *fakeCluster) {
			c.list[2].ID = 0x77
			if err := c.r.note("", "id:node3", "77"); err != nil {
				t.Error(err)
			}
		}, ""},
	} {
		c := newFake(t, fakePlan(t, 3))
		tc.set(c)
		detail, err := (&proof{cluster: c.r.cluster}).listIsPlanned(t.Context(), c.r.present())
		wantError(t, tc.name, err, tc.want)
		if (detail == "") != (err != nil) {
			t.Errorf("%s: %q, %v", tc.name, detail, err)
		}
	}
}

// TestPlacesOfMembers: every member that is listed has its peer URLs in the flag, a member that joins under its own
// name, which the list does not have yet.
func TestPlacesOfMembers(t *testing.T) {
	list := []*etcdserverpb.Member{{ID: 1, Name: "a", PeerURLs: []string{"http://a:1", "http://a:2"}},
		{ID: 2, PeerURLs: []string{"http://b:1"}}, {ID: 3, Name: "c", PeerURLs: []string{"http://c:1"}}}
	const want = "a=http://a:1,a=http://a:2,b=http://b:1,c=http://c:1"
	if got := initialCluster(list, 2, "b"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestStartOfOneThatRuns: a member that runs is not started again, and one that is down is.
func TestStartOfOneThatRuns(t *testing.T) {
	for _, up := range []bool{true, false} {
		c := newFake(t, fakePlan(t, 3, "node2"))
		c.set(3, up)
		if _, err := doStart(t.Context(), c.r, &plan.Step{Member: "node3"}); err != nil {
			t.Fatal(err)
		}
		if started := slices.Contains(c.acts, "start node3"); started == up {
			t.Errorf("it was up %v: %q", up, c.acts)
		}
	}
}

// TestDirOfOneThatRuns: the data dir of a member that runs stays where it is.
func TestDirOfOneThatRuns(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	_, err := doSetAside(t.Context(), c.r, &plan.Step{ID: "aside", Member: "node2"})
	wantError(t, "it runs", err, "node2 runs: its data dir stays where it is")
	if len(c.acts) > 0 {
		t.Errorf("%q", c.acts)
	}
	c.set(2, false)
	detail, err := doSetAside(t.Context(), c.r, &plan.Step{ID: "aside", Member: "node2"})
	if err != nil || detail != "now elsewhere" || !slices.Equal(c.acts, []string{"aside node2"}) {
		t.Errorf("it is down: %q, %v, %q", detail, err, c.acts)
	}
}

// TestAddWhileOneIsDown: etcd refuses to add a member while a voter is not connected. With a person or hooks the step
// ends at once and waits for the voters; in a cluster that is not guarded it is tried until its time is over.
func TestAddWhileOneIsDown(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		c := newFake(t, fakePlan(t, 4, "node2"))
		c.r.guarded, c.r.limits.step, c.r.limits.call = guarded, 100*time.Millisecond, 50*time.Millisecond
		c.list = slices.Delete(c.list, 1, 2)
		c.set(3, false)
		_, err := doAdd(t.Context(), c.r, &plan.Step{ID: "add", Member: "node2"})
		if err == nil || errors.Is(err, errNotConnected) != guarded {
			t.Errorf("guarded %v: %v", guarded, err)
		}
	}
}

// TestPromotedWithOtherContent: a member that was promoted and holds something else is no success, and is not recorded
// as one.
func TestPromotedWithOtherContent(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.list[1].IsLearner, c.of(2).hash = true, 8
	_, err := doPromote(t.Context(), c.r, &plan.Step{ID: "promote", Member: "node2"})
	if !errors.Is(err, errHashes) || c.r.j.value("promoted:node2") != "" || c.list[1].IsLearner {
		t.Errorf("%v, recorded %q, learner %v", err, c.r.j.value("promoted:node2"), c.list[1].IsLearner)
	}
}

// TestMemberOfAnID: a member that stays has an ID before a retired one that carries it too. What the plan does not know
// is called by its name, or its ID.
func TestMemberOfAnID(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	c.r.plan.Members[0].ID, c.r.plan.Members[0].Action = 3, plan.Retire
	if m := c.r.byID(3); m == nil || m.Name != "node3" {
		t.Errorf("the retired one comes first: %+v", m)
	}
	c.r.plan.Members[0].Action, c.r.plan.Members[2].Action = plan.Keep, plan.Retire
	if m := c.r.byID(3); m == nil || m.Name != "node1" {
		t.Errorf("the retired one comes last: %+v", m)
	}
	for want, m := range map[string]*etcdserverpb.Member{"node2": {ID: 2, Name: "other"}, "x": {ID: 0xee, Name: "x"},
		"ee": {ID: 0xee}} {
		if got := c.r.nameOf(m); got != want {
			t.Errorf("%+v is called %s, want %s", m, got, want)
		}
	}
}

// TestNotedDirs: the data dirs on the hosts are recorded once, and again if they are others.
func TestNotedDirs(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	lines := len(c.r.j.records)
	for _, tc := range []struct {
		dirs map[string]string
		new  int
	}{
		{nil, 0}, {map[string]string{"node2": "/a"}, 1}, {map[string]string{"node2": "/a"}, 0},
		{nil, 0}, {map[string]string{"node2": "/a", "": "/b"}, 1}, {map[string]string{"node2": "/c", "": "/b"}, 1},
	} {
		c.r.live.DataDirs = tc.dirs
		if err := c.r.noteDirs(); err != nil {
			t.Fatal(err)
		}
		if got := len(c.r.j.records) - lines; got != tc.new {
			t.Errorf("%v: %d new lines, want %d", tc.dirs, got, tc.new)
		}
		lines = len(c.r.j.records)
	}
	got := map[string]string{}
	for _, n := range []string{"node1", "node2", "node3"} {
		got[n] = c.r.j.value("dir:" + n)
	}
	if d := cmp.Diff(map[string]string{"node1": "/b", "node2": "/c", "node3": "/b"}, got); d != "" {
		t.Errorf("data dirs (-want +got):\n%s", d)
	}
}

// TestNotedFlags: the flags of the command are recorded once, and again if they are others. A run without any, as that
// of the lab, records none.
func TestNotedFlags(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	lines := len(c.r.j.records)
	first, second := shell.Format("--hook-stop {}", "halt -x"), shell.Format("--hook-stop {}", "reboot")
	for _, tc := range []struct {
		flags shell.Command
		new   int
	}{{shell.Command{}, 0}, {first, 1}, {first, 0}, {second, 1}, {shell.Command{}, 0}} {
		c.r.live.Flags = tc.flags
		if err := c.r.noteFlags(); err != nil {
			t.Fatal(err)
		}
		if got := len(c.r.j.records) - lines; got != tc.new {
			t.Errorf("%s: %d new lines, want %d", tc.flags, got, tc.new)
		}
		lines = len(c.r.j.records)
	}
	if got := flagsOf(c.r.j.value(flagsValue)); !got.Equal(second) {
		t.Errorf("%s", got)
	}
	if got := flagsOf("{"); !got.IsZero() {
		t.Errorf("%s is made of what is not known", got)
	}
}

// TestHookFails: the operator reads what a hook said that failed, and which state a hook has to reach that did not
// return in time. The end of the run ends a hook and is no failure of it.
func TestHookFails(t *testing.T) {
	c := newFake(t, fakePlan(t, 3, "node2"))
	var shown strings.Builder
	o := &LiveOptions{HookTimeout: time.Minute, Output: &shown}
	f := newLiveHost(t.Context(), o, t.TempDir()+"/plan.yaml")
	f.runBy(c.r)
	m := c.r.plan.Member("node2")
	if err := f.runHook(t.Context(), m, "stop", "echo it is down", ""); err != nil || shown.String() != "it is down\n" {
		t.Errorf("%v, shown %q", err, shown.String())
	}
	err := f.runHook(t.Context(), m, "stop", "echo first; echo no such unit >&2; exit 3", "")
	wantError(t, "a hook that fails", err, `hook stop of node2: exit status 3. It said: "first\nno such unit"`)
	if log, err := os.ReadFile(HooksLogPath(f.plan)); err != nil || strings.Count(string(log), "# --- ") != 2 {
		t.Errorf("the log is %q, %v", log, err)
	}
	const hangs = "exec tail -f /dev/null"
	o.HookTimeout = time.Millisecond
	for what, state := range map[string]string{"stop": "stopped", "wipe": "without its old data dir",
		"start": "started, and leave it running"} {
		err := f.runHook(t.Context(), m, what, hangs, "")
		wantError(t, what, err, "hook "+what+" of node2 was still at work after 1ms and was ended; it must return "+
			"once the member is "+state+". It printed nothing")
	}
	o.HookTimeout = time.Minute
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.runHook(ended, m, "stop", hangs, ""); !errors.Is(err, context.Canceled) ||
		err.Error() != "context canceled" {
		t.Errorf("the run was ended: %v", err)
	}
}

// TestHookEnvironment: a hook does not get the password to the cluster. A member that joins gets the state that goes
// with the initial cluster; another one gets neither.
func TestHookEnvironment(t *testing.T) {
	t.Setenv("ETCD_MEDIC_USER", "root")
	t.Setenv("ETCD_MEDIC_PASSWORD", "secret")
	t.Setenv("ETCD_MEDIC_PASSWORD_FILE", "/secret")
	t.Setenv("ETCD_MEDIC_USERS", "kept")
	got := hooks.Environ()
	for e, want := range map[string]bool{"ETCD_MEDIC_USER=root": false, "ETCD_MEDIC_PASSWORD=secret": false,
		"ETCD_MEDIC_PASSWORD_FILE=/secret": false, "ETCD_MEDIC_USERS=kept": true} {
		if slices.Contains(got, e) != want {
			t.Errorf("%s: passed on %v", e, !want)
		}
	}
	c := newFake(t, fakePlan(t, 3, "node2"))
	f := newLiveHost(t.Context(), &LiveOptions{}, "plan.yaml")
	f.runBy(c.r)
	for initial, state := range map[string]string{"": "", "node2=http://node2:2380": "existing"} {
		env := hookEnv(f, c.r.plan.Member("node2"), "start", initial)
		for _, want := range []string{"ETCD_MEDIC_INITIAL_CLUSTER=" + initial,
			"ETCD_MEDIC_INITIAL_CLUSTER_STATE=" + state, "ETCD_MEDIC_ACTION=start",
			"ETCD_MEDIC_MEMBER_ID=2", "ETCD_MEDIC_OLD_MEMBER_ID=2"} {
			if !slices.Contains(env, want) {
				t.Errorf("%q is not in %q", want, env)
			}
		}
	}
}
