package run

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// wantError wants an error with a text; "" wants none.
func wantError(t *testing.T, what string, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

// TestCatchUp: a new member has to apply what the best member had, and then to be at its revision. One that does not
// move is not waited for.
func TestCatchUp(t *testing.T) {
	for name, c := range map[string]struct {
		applied     uint64
		revision    int64
		moves       bool
		detail, err string
	}{
		"the same": {10, 10, false, "applied 10, revision 10, database 3.0 MiB", ""},
		"more":     {11, 12, false, "applied 11, revision 12, database 3.0 MiB", ""},
		"it stays": {9, 10, false, "", "it stays at applied index 9, node1 is at 10"},
		"it moves": {9, 10, true, "applied 10, revision 10, database 3.0 MiB", ""},
		"another revision": {10, 9, false, "",
			"it has applied entry 10 and is at revision 9; node1 is at 10: it was sent the log"},
	} {
		f := newFake(t, fakePlan(t, 3, "node2"))
		f.r.limits.step, f.dbSize = 50*time.Millisecond, 3<<20
		goal, err := f.r.goal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		f.of(2).applied, f.of(2).revision = c.applied, c.revision
		f.mu.Unlock()
		if c.moves {
			time.AfterFunc(20*time.Millisecond, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.of(2).applied = 10
			})
		}
		detail, err := f.r.catchUp(t.Context(), f.r.plan.Member("node2"), goal)
		wantError(t, name, err, c.err)
		if detail != c.detail || err == nil && f.r.out.Bytes != 3<<20 {
			t.Errorf("%s: %q, %d bytes", name, detail, f.r.out.Bytes)
		}
	}
	f := newFake(t, fakePlan(t, 3, "node2"))
	goal, err := f.r.goal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.set(2, false)
	time.AfterFunc(20*time.Millisecond, func() { f.set(2, true) })
	detail, err := f.r.catchUp(t.Context(), f.r.plan.Member("node2"), goal)
	if err != nil || !strings.HasPrefix(detail, "applied 10, revision 10") {
		t.Errorf("one that does not answer at first: %q, %v", detail, err)
	}
}

// TestBackupOfThisRun: a snapshot is taken once, and a file that is not of this run is never replaced.
func TestBackupOfThisRun(t *testing.T) {
	f := newFake(t, fakePlan(t, 3))
	step := &plan.Step{ID: "backup"}
	for _, want := range []string{"backup.db, 36 B, its sha256 trailer fits", "backup.db, 36 B, is there already"} {
		if detail, err := doBackup(t.Context(), f.r, step); err != nil || detail != want {
			t.Errorf("%q, %v; want %q", detail, err, want)
		}
	}
	if len(f.snapshots) != 1 || f.r.out.Bytes != 36 {
		t.Errorf("snapshots of %q, %d bytes", f.snapshots, f.r.out.Bytes)
	}
	f = newFake(t, fakePlan(t, 3))
	if err := os.WriteFile(f.r.backup, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := doBackup(t.Context(), f.r, step)
	wantError(t, "another file", err, "exists and is not of this run: nothing is overwritten")
	if b, err := os.ReadFile(f.r.backup); err != nil || string(b) != "older" || len(f.snapshots) > 0 {
		t.Errorf("%q, %v, snapshots of %q", b, err, f.snapshots)
	}
}

// TestAdded: a member is added once it is listed with its peer URLs under another ID; one that joins has no other.
func TestAdded(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(f *fakeCluster, m *plan.Member)
		want bool
		id   string
	}{
		"under its old ID": {func(*fakeCluster, *plan.Member) {}, false, ""},
		"under a new one":  {func(f *fakeCluster, _ *plan.Member) { find(f.list, 2).ID = 0x77 }, true, "77"},
		"one that joins":   {func(_ *fakeCluster, m *plan.Member) { m.Action = plan.Join }, true, "2"},
		"not listed": {func(f *fakeCluster, _ *plan.Member) { f.list = slices.Delete(f.list, 1, 2) }, false,
			""},
		"another URL": {func(f *fakeCluster, _ *plan.Member) {
			find(f.list, 2).PeerURLs = []string{"http://x:1"}
		}, false, ""},
	} {
		f := newFake(t, fakePlan(t, 3, "node2"))
		c.set(f, f.r.plan.Member("node2"))
		got, err := added(t.Context(), f.r, &plan.Step{ID: "add", Member: "node2"})
		if err != nil || got != c.want || f.r.j.value("id:node2") != c.id {
			t.Errorf("%s: %v, ID %q, %v", name, got, f.r.j.value("id:node2"), err)
		}
	}
}

// TestAnsweredTooLate: what an earlier attempt did counts as done; what it did not is an error.
func TestAnsweredTooLate(t *testing.T) {
	add := &plan.Step{ID: "add", Member: "node2"}
	f := newFake(t, fakePlan(t, 3, "node2"))
	find(f.list, 2).ID = 0x77
	f.set(0x77, true)
	if detail, err := doAdd(t.Context(), f.r, add); err != nil || !strings.HasSuffix(detail, "new ID 77") {
		t.Errorf("added before: %q, %v", detail, err)
	}
	f = newFake(t, fakePlan(t, 3, "node2"))
	_, err := doAdd(t.Context(), f.r, add)
	wantError(t, "it has its old ID", err, "node2 is not listed under a new ID")
	f.r.plan.Member("node2").PeerURLs = nil
	_, err = doAdd(t.Context(), f.r, add)
	wantError(t, "no peer URL", err, "no peer URL of node2 is known")
	for minor, learner := range map[int]bool{3: false, 5: true} {
		f = newFake(t, fakePlan(t, 3, "node2"))
		f.r.plan.Cluster.Minor = minor
		f.list = slices.Delete(f.list, 1, 2)
		if _, err := doAdd(t.Context(), f.r, add); err != nil || f.list[2].IsLearner != learner {
			t.Errorf("3.%d: a learner %v, %v", minor, f.list[2].IsLearner, err)
		}
	}
	f = newFake(t, fakePlan(t, 3, "node2"))
	f.list = slices.Delete(f.list, 1, 2)
	if _, err := doRemove(t.Context(), f.r, &plan.Step{ID: "remove", Member: "node2"}); err != nil {
		t.Errorf("removed before: %v", err)
	}
	f = newFake(t, fakePlan(t, 3, "node2"))
	if _, err := doPromote(t.Context(), f.r, &plan.Step{ID: "promote", Member: "node2"}); err != nil ||
		f.r.j.value("promoted:node2") != "yes" {
		t.Errorf("promoted before: %v", err)
	}
	f = newFake(t, fakePlan(t, 3, "node2"))
	if _, err := doStartEmpty(t.Context(), f.r, &plan.Step{ID: "start", Member: "node2"}); err != nil ||
		len(f.acts) > 0 || f.r.j.value("initial:node2") != "" {
		t.Errorf("started before: %q, %v", f.acts, err)
	}
}

// TestPromoted: a voter counts as promoted once its content is proven too.
func TestPromoted(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(f *fakeCluster)
		note bool
		want bool
		err  string
	}{
		"a learner":            {func(f *fakeCluster) { find(f.list, 2).IsLearner = true }, false, false, ""},
		"a learner again":      {func(f *fakeCluster) { find(f.list, 2).IsLearner = true }, true, false, ""},
		"a voter":              {func(*fakeCluster) {}, false, false, ""},
		"a voter that is sure": {func(*fakeCluster) {}, true, true, ""},
		"not listed": {func(f *fakeCluster) { f.list = slices.Delete(f.list, 1, 2) }, true, false,
			"node2 (2) is not listed"},
	} {
		f := newFake(t, fakePlan(t, 3, "node2"))
		c.set(f)
		if c.note {
			if err := f.r.note("promote", "promoted:node2", "yes"); err != nil {
				t.Fatal(err)
			}
		}
		got, err := promoted(t.Context(), f.r, &plan.Step{ID: "promote", Member: "node2"})
		wantError(t, name, err, c.err)
		if got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestStopped: a member that the cluster has removed and that no URL reaches is stopped by its host.
func TestStopped(t *testing.T) {
	for name, c := range map[string]struct {
		sandbox, down bool
		set           func(m *plan.Member)
		want          bool
	}{
		"it runs":           {false, false, nil, false},
		"it is down":        {false, true, nil, true},
		"retired":           {false, true, func(m *plan.Member) { m.Action, m.ClientURLs = plan.Retire, nil }, false},
		"retired, a URL":    {false, true, func(m *plan.Member) { m.Action = plan.Retire }, true},
		"no URL":            {false, true, func(m *plan.Member) { m.ClientURLs = nil }, true},
		"retired in copies": {true, true, func(m *plan.Member) { m.Action, m.ClientURLs = plan.Retire, nil }, true},
	} {
		f := newFake(t, fakePlan(t, 3, "node2"))
		f.r.sandbox = c.sandbox
		f.set(2, !c.down)
		if c.set != nil {
			c.set(f.r.plan.Member("node2"))
		}
		if got, err := stopped(t.Context(), f.r, &plan.Step{Member: "node2"}); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestForceNew: the best member is started with the flag, ended, and started without it. It has to be alone then.
func TestForceNew(t *testing.T) {
	f := newFake(t, fakePlan(t, 3))
	_, err := doForceNew(t.Context(), f.r, nil)
	wantError(t, "three are listed", err, "3 members are listed, want 1 alone")
	f = newFake(t, fakePlan(t, 3))
	f.list = f.list[:1]
	if _, err := doForceNew(t.Context(), f.r, nil); err != nil ||
		!slices.Equal(f.acts, []string{"stop node1", "start node1", "stop node1", "start node1"}) {
		t.Errorf("%q, %v", f.acts, err)
	}
	f = newFake(t, fakePlan(t, 3))
	f.list = []*etcdserverpb.Member{{ID: 1, Name: "node1"}}
	f.set(1, false)
	if _, err := doForceNew(t.Context(), f.r, nil); err != nil || len(f.acts) != 3 {
		t.Errorf("it was down: %q, %v", f.acts, err)
	}
}

// TestLeaderMoves: the best member leads before its database is sent; a leader that is not in the plan cannot be asked.
func TestLeaderMoves(t *testing.T) {
	f := newFake(t, fakePlan(t, 3))
	f.r.limits.step = 100 * time.Millisecond
	for _, c := range []struct {
		leader uint64
		detail string
	}{{1, ""}, {2, "from node2"}} {
		f.mu.Lock()
		f.leader = c.leader
		f.mu.Unlock()
		if lead, err := leads(t.Context(), f.r, nil); err != nil || lead != (c.leader == 1) {
			t.Errorf("leader %d: %v, %v", c.leader, lead, err)
		}
		if detail, err := doMoveLeader(t.Context(), f.r, nil); err != nil || detail != c.detail || f.leader != 1 {
			t.Errorf("leader %d: %q, now %d, %v", c.leader, detail, f.leader, err)
		}
	}
	f.leader = 3
	if err := f.r.ensureLeader(t.Context(), nil); err != nil || f.leader != 1 {
		t.Errorf("leader %d, %v", f.leader, err)
	}
	f.list = append(f.list, &etcdserverpb.Member{ID: 0xee})
	f.set(0xee, true)
	f.leader = 0xee
	_, err := doMoveLeader(t.Context(), f.r, nil)
	wantError(t, "another leader", err, "the leader ee is not at hand")
	f.leader = 2
	f.fail = func(call string) error {
		if call == "client node2" {
			return rpctypes.ErrAuthFailed
		}
		return nil
	}
	_, err = doMoveLeader(t.Context(), f.r, nil)
	wantError(t, "a leader that refuses", err, "node2 leads, and refuses the login (")
	f.fail = nil
	for id := range f.up {
		f.set(id, id == 1)
	}
	_, err = leads(t.Context(), f.r, nil)
	wantError(t, "no majority", err, "no leader yet")
}

// TestWaysThatAreNot: only ways of the plan that are possible, and that a program can go, are applied, to a new folder.
func TestWaysThatAreNot(t *testing.T) {
	file := savePlan(t, "h-misconfigured-member-add", plan.Options{})
	p := mustLoad(t, file)
	exists := t.TempDir()
	for what, c := range map[string]struct {
		o    ApplyOptions
		text string
	}{
		"unknown":   {ApplyOptions{Mode: "none", Out: exists + "/new"}, "the plan has no way none"},
		"no folder": {ApplyOptions{Mode: plan.Clone}, "the folder for the new data dirs is missing"},
		"a folder":  {ApplyOptions{Mode: plan.Clone, Out: exists}, "exists; nothing is overwritten"},
		"a folder again": {ApplyOptions{Mode: plan.Clone, Out: exists, Options: Options{Again: true}},
			"exists; nothing is overwritten"},
	} {
		_, err := Apply(t.Context(), file, c.o)
		if r := wantRefusal(t, err); !strings.Contains(r.Reason, c.text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	tried := 0
	for _, w := range p.Ways {
		text := " is done by hand"
		if !w.Possible {
			text = " is not possible: " + w.Why
		} else if slices.Contains([]plan.Mode{plan.MendFiles, plan.Clone, plan.Rebuild, plan.Reseed, plan.Live},
			w.Mode) {
			continue
		}
		tried++
		_, err := Apply(t.Context(), file, ApplyOptions{Mode: w.Mode, Out: exists + "/new"})
		if r := wantRefusal(t, err); r.Reason != string(w.Mode)+text {
			t.Errorf("%s: %v", w.Mode, err)
		}
	}
	if tried == 0 {
		t.Errorf("all ways can be applied: %+v", p.Ways)
	}
	wantNothingBegun(t, file)
	s := &session{plan: p}
	var refused interface{ Refused() bool }
	err := s.nothingToTry()
	wantError(t, "nothing to try", err, "has no steps that could be tried on copies")
	s.o.Rehearse = plan.Restore
	other := s.nothingToTry()
	wantError(t, "another way", other, "the plan has no way restore that is possible")
	if !errors.As(err, &refused) || !errors.As(other, &refused) {
		t.Errorf("%v, %v", err, other)
	}
}

// TestFresh: a folder that exists is accepted only from a run of this plan and way that announced it and did not end.
func TestFresh(t *testing.T) {
	out := t.TempDir()
	type line struct {
		mode  plan.Mode
		state State
		step  string
		out   string
	}
	told := line{plan.Clone, StateNote, "clone", out}
	for name, c := range map[string]struct {
		lines []line
		text  string
	}{
		"no run":            {nil, "exists; nothing is overwritten"},
		"announced":         {[]line{told}, ""},
		"of another way":    {[]line{{plan.Reseed, StateNote, "clone", out}}, "exists; nothing is overwritten"},
		"another folder":    {[]line{{plan.Clone, StateNote, "clone", out + "x"}}, "exists; nothing is overwritten"},
		"another step":      {[]line{{plan.Clone, StateNote, "other", out}}, "exists; nothing is overwritten"},
		"ended":             {[]line{told, {plan.Clone, StateEnd, "", ""}}, "holds what this plan's run 1 handed out"},
		"abandoned":         {[]line{told, {plan.Clone, StateAbandon, "", ""}}, "exists; nothing is overwritten"},
		"another way ended": {[]line{told, {plan.Reseed, StateEnd, "", ""}}, ""},
		"ended twice": {[]line{told, {plan.Clone, StateEnd, "", ""}, {plan.Clone, StateEnd, "", ""}},
			"exists; nothing is overwritten"},
		"announced again": {[]line{told, {plan.Clone, StateEnd, "", ""}, told}, ""},
	} {
		file := filepath.Join(t.TempDir(), "plan.yaml")
		for _, l := range c.lines {
			b, err := json.Marshal(Record{Run: 1, Mode: l.mode, State: l.state, Step: l.step,
				Values: map[string]string{"out": l.out}})
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(JournalPath(file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(append(b, '\n')); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s := &session{file: file}
		wantError(t, name, s.fresh(out, plan.Clone, "clone"), c.text)
		if err := s.fresh(filepath.Join(out, "new"), plan.Clone, "clone"); err != nil {
			t.Errorf("%s: a new folder: %v", name, err)
		}
	}
}

// TestBoundOfHeldChanges: what one member changed is kept up to a size. What the best member made too does not count.
func TestBoundOfHeldChanges(t *testing.T) {
	o := &oldDir{h: newHistory(), known: map[change]int32{}, keys: map[string]held{}, bytes: heldBytes - 3}
	made := &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte("k"), Value: []byte("old")}}
	o.known[o.h.of(made)]++
	for _, c := range []struct{ key, value, err string }{
		{"k", "old", ""},
		{"k", "vv", ""},
		{"l", "", "it changed more than 256 MiB"},
	} {
		wantError(t, c.key+c.value, o.take(c.key, held{value: []byte(c.value)}), c.err)
	}
	if len(o.keys) != 1 || string(o.keys["k"].value) != "vv" || o.known[o.h.of(made)] != 0 {
		t.Errorf("%+v", o.keys)
	}
}
