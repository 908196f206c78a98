package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// liveRun is a live repair of a fake cluster, from the file of the plan.
type liveRun struct {
	p       *plan.Plan
	c       *fakeCluster
	s       *fakeServers
	o       ApplyOptions
	file    string
	notices []string
}

// newLiveRun prepares the repair of node2 among n members.
func newLiveRun(t *testing.T, n int) *liveRun {
	t.Helper()
	r := &liveRun{p: fakePlan(t, n, "node2"), file: filepath.Join(t.TempDir(), "plan.yaml")}
	r.c = newFake(t, r.p)
	r.s = serve(t, r.c)
	r.o = ApplyOptions{Mode: plan.Live, Options: Options{limits: hasty, room: func(string) (int64, bool) {
		return 1 << 40, true
	}}, Live: LiveOptions{Endpoints: r.s.endpoints(), HostActions: r.s.act,
		Notice: func(text string) { r.notices = append(r.notices, text) }}}
	return r
}

func (r *liveRun) apply(t *testing.T) (*Outcome, error) {
	t.Helper()
	if _, err := os.Stat(r.file); err != nil {
		if err := r.p.Seal(); err != nil {
			t.Fatal(err)
		}
		if err := r.p.Save(r.file); err != nil {
			t.Fatal(err)
		}
	}
	return Apply(t.Context(), r.file, r.o)
}

var repairOfTwo = []string{"stop node2", "remove node2", "wipe node2", "add http://node2:2380", "start node2",
	"promote http://node2:2380"}

// TestLiveRepair repairs a running cluster, from the file of the plan to the proof.
func TestLiveRepair(t *testing.T) {
	r := newLiveRun(t, 3)
	r.c.leader, r.c.dbSize = 3, 5<<20
	r.p.Lost.CommittedEntries = 2
	out, err := r.apply(t)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.c.acts, repairOfTwo) || len(r.c.lost) > 0 {
		t.Errorf("acts %q, want %q; the majority was lost by %q", r.c.acts, repairOfTwo, r.c.lost)
	}
	if !out.Reached || out.Mode != plan.Live || out.Way != plan.Live || len(out.Proofs) != 5 || out.Bytes != 5<<20 {
		t.Errorf("%+v", out)
	}
	details := map[string]string{}
	for _, s := range out.Steps {
		if s.State != "done" {
			t.Errorf("%+v", s)
		}
		details[s.ID] = s.Detail
	}
	for id, want := range map[string]string{"02-move-leader-node1": "from node3", "08-add-learner-node2": "new ID 65",
		"10-wait-node2": "database 5.0 MiB", "01-backup-node1": "plan.yaml.backup.db, 36 B"} {
		if !strings.Contains(details[id], want) {
			t.Errorf("step %s says %q, want %q", id, details[id], want)
		}
	}
	var drifted []string
	for _, d := range out.Drift {
		drifted = append(drifted, d.Member)
	}
	if !slices.Equal(drifted, []string{"node1", "node2", "node2"}) { // node2 again just before it is stopped
		t.Errorf("drift of %q", drifted)
	}
	notices := strings.Join(r.notices, "\n")
	for _, want := range []string{"2 committed effects that node1 lacks are lost, as the plan lists them",
		"node1 went from applied index 0 to 10 since its data dir was copied\n",
		"until it is stopped, a member that differs keeps acknowledging"} {
		if !strings.Contains(notices, want) || !strings.Contains(strings.Join(out.Notes, "\n")+"\n", want) {
			t.Errorf("%q is in the notices or notes not said: %q; %q", want, r.notices, out.Notes)
		}
	}
	for _, file := range []string{r.file + ".backup.db", r.file + ".backup.node2.db"} {
		if b, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(b), "data") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestLiveGoesOn: the same command continues after a step that failed, and asks nothing about what was done before.
func TestLiveGoesOn(t *testing.T) {
	r := newLiveRun(t, 3)
	failed := errors.New("no way to the host")
	fail := true
	r.o.Live.HostActions = func(ctx context.Context, h HostStep) error {
		if h.Action == "start" && fail {
			return failed
		}
		return r.s.act(ctx, h)
	}
	var unfinished *UnfinishedError
	if _, err := r.apply(t); !errors.Is(err, failed) || !errors.As(err, &unfinished) ||
		unfinished.Step != "09-start-empty-node2" {
		t.Fatalf("%v", err)
	}
	fail = false
	r.o.room = func(string) (int64, bool) { return 0, true } // its snapshots are there already
	out, err := r.apply(t)
	if err != nil || !out.Resumed || !out.Reached {
		t.Fatalf("%+v %v", out, err)
	}
	if !slices.Equal(r.c.acts, repairOfTwo) {
		t.Errorf("acts %q, want %q", r.c.acts, repairOfTwo)
	}
	before := 0
	for _, s := range out.Steps {
		if s.State == "done before" {
			before++
		}
	}
	if before != 8 {
		t.Errorf("%d steps were done before, want 8: %+v", before, out.Steps)
	}
}

// TestLiveWithoutLeader: members that are down are started first where the cluster has no leader.
func TestLiveWithoutLeader(t *testing.T) {
	for _, asked := range []bool{false, true} {
		r := newLiveRun(t, 3)
		r.p.Member("node3").Action = plan.Start
		if err := r.p.LayOut(); err != nil {
			t.Fatal(err)
		}
		for id, name := range map[uint64]string{2: "node2", 3: "node3"} {
			r.c.set(id, false)
			r.s.stop(name)
		}
		want := append([]string{"start node3"}, repairOfTwo[1:]...) // node2 is down
		if asked {
			r.o.Live.HostActions = nil
			r.o.Live.Prompt = func(context.Context, []string) error { return ErrStopped }
			want = nil
		}
		out, err := r.apply(t)
		switch {
		case asked && (!strings.Contains(wantRefusal(t, err).Reason, "before the first step") || out != nil):
			t.Errorf("%+v %v", out, err)
		case !asked && err != nil:
			t.Errorf("%v", err)
		}
		if !slices.Equal(r.c.acts, want) {
			t.Errorf("acts %q, want %q", r.c.acts, want)
		}
		if len(r.notices) == 0 || !strings.Contains(r.notices[0], "the cluster has no leader now") {
			t.Errorf("notices %q", r.notices)
		}
	}
}

// TestLiveRefused: what is refused before the first step changes nothing and leaves no run to continue.
func TestLiveRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(r *liveRun)
		want string // "" is done
	}{
		{"no endpoints", func(r *liveRun) { r.o.Live.Endpoints = nil },
			"the endpoints of the running cluster are missing"},
		{"no actions on the hosts", func(r *liveRun) { r.o.Live.HostActions = nil },
			"a person or hooks have to stop members"},
		{"no hook that stops", func(r *liveRun) {
			r.o.Live.HostActions, r.o.Live.HookWipe, r.o.Live.HookStart = nil, "true", "true"
		}, "a person or hooks"},
		{"no hook that wipes", func(r *liveRun) {
			r.o.Live.HostActions, r.o.Live.HookStop, r.o.Live.HookStart = nil, "true", "true"
		}, "a person or hooks"},
		{"no hook that starts", func(r *liveRun) {
			r.o.Live.HostActions, r.o.Live.HookStop, r.o.Live.HookWipe = nil, "true", "true"
		}, "a person or hooks"},
		{"a name that the plan lacks", func(r *liveRun) { r.o.Live.Endpoints = []string{"node9=http://a:1"} },
			"the plan has no member node9"},
		{"certificates that are missing", func(r *liveRun) { r.o.Live.CACert = "missing.pem" }, "missing.pem"},
		{"another cluster", func(r *liveRun) { r.c.of(1).cluster = 0xc9 },
			"the running cluster is c9, the plan is for c1"},
		{"an older state", func(r *liveRun) { r.c.of(1).revision = 9 }, "node1 is at revision 9, in the plan at 10"},
		{"a member is not listed", func(r *liveRun) { r.c.list = r.c.list[:2] },
			"member node3 (3) of the plan is not listed"},
		{"an unknown member", func(r *liveRun) {
			r.c.list = append(r.c.list, &etcdserverpb.Member{ID: 0xee, IsLearner: true})
		}, "the running cluster has a member ee that the plan does not know"},
		{"a downgrade is enabled", func(r *liveRun) { r.c.downgrade = "3.5" },
			"a downgrade to 3.5 is enabled: a server without data refuses to join then"},
		{"no root", func(r *liveRun) { r.c.noRoot = rpctypes.ErrPermissionDenied }, "the credentials do not allow"},
		{"no room", func(r *liveRun) {
			r.c.dbSize, r.o.room = 1<<30, func(string) (int64, bool) { return 2<<30 - 1, true }
		}, "2.0 GiB are needed"},
		{"room enough", func(r *liveRun) {
			r.c.dbSize, r.o.room = 1<<30, func(string) (int64, bool) { return 3 << 30, true }
		}, ""},
		{"room for one snapshot, and no other is wanted", func(r *liveRun) {
			r.c.dbSize, r.o.room, r.o.Live.SkipSaves = 1<<30, func(string) (int64, bool) { return 3 << 29, true }, true
		}, ""},
		{"writes that the plan does not list", func(r *liveRun) {
			r.c.wrote(2, 11, "k", "v")
			r.c.of(1).applied = 11
		}, "would be lost that the plan does not list: node1 lacks the present state of 1 key of node2 (k)"},
		{"writes that are given up", func(r *liveRun) {
			r.c.wrote(2, 11, "k", "v")
			r.c.of(1).applied, r.o.Live.AcceptLost = 11, true
		}, ""},
		{"writes of a member that stays", func(r *liveRun) {
			r.c.wrote(3, 11, "k", "v")
			r.c.of(3).revision, r.c.of(1).applied = 10, 11
		}, ""},
		{"a person who does not begin", func(r *liveRun) {
			r.o.Live.HostActions = nil
			r.o.Live.Prompt = func(context.Context, []string) error { return ErrStopped }
		}, "the operator stopped here before the first step"},
		{"no answer", func(r *liveRun) {
			for _, name := range []string{"node1", "node2", "node3"} {
				r.s.stop(name)
			}
		}, "no endpoint answers: "},
		{"members of no plan", func(r *liveRun) {
			r.s.stop("node3")
			r.c.set(0xee, true)
			r.s.start("node3", 0xee)
			r.o.Live.Endpoints = r.s.endpoints("node3")
		}, "no endpoint answers as a member of the plan: they belong to members that the plan does not know"},
		{"two members of one ID", func(r *liveRun) {
			r.p.Member("node3").ID = 1
			r.p.Member("node3").Action = plan.Retire
			r.s.stop("node3")
			r.s.start("node3", 1)
		}, "both answer as member 1, and several data dirs of the plan are of that member"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newLiveRun(t, 3)
			tc.set(r)
			out, err := r.apply(t)
			if tc.want == "" {
				if err != nil || !out.Reached {
					t.Fatalf("%+v %v", out, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || out != nil {
				t.Errorf("%v; want %q", err, tc.want)
			}
			var refused *refusal.Error
			if !errors.As(err, &refused) && tc.want != "missing.pem" {
				t.Errorf("%v is no refusal", err)
			}
			if len(r.c.acts) > 0 {
				t.Errorf("acts %q", r.c.acts)
			}
			st, err := Status(r.file)
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range st.Runs {
				if run.State != "given up" || len(run.Steps) > 0 {
					t.Errorf("%+v", run)
				}
			}
		})
	}
}

// TestLiveNamesItsFiles: no file is overwritten by a snapshot.
func TestLiveNamesItsFiles(t *testing.T) {
	for name, want := range map[string]string{"kept.db": "kept.db exists", "kept.node2.db": "kept.node2.db exists",
		"kept.node3.db": ""} {
		for _, skip := range []bool{false, true} {
			r := newLiveRun(t, 3)
			dir := t.TempDir()
			r.o.Live.Backup, r.o.Live.SkipSaves = filepath.Join(dir, "kept.db"), skip
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := r.apply(t)
			var refusedBy *refusal.Error
			if refused := want != "" && (name == "kept.db" || !skip); refused != errors.As(err, &refusedBy) ||
				refused && !strings.Contains(refusedBy.Reason, want) || !refused && err != nil {
				t.Errorf("%s, skip %v: %v", name, skip, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "kept.node2.db")); (err == nil) == skip && name == "kept.node3.db" {
				t.Errorf("skip %v: the snapshot of node2: %v", skip, err)
			}
		}
	}
}

// TestUnlistedWhileStopping: writes that the member accepted since the first check stop the repair before its step.
func TestUnlistedWhileStopping(t *testing.T) {
	r := newLiveRun(t, 3)
	r.o.observe = func(rec Record, flushed bool) {
		if rec.Step == "04-save-node2" && rec.State == StateBegin && flushed {
			r.c.wrote(2, 11, "k", "v")
			r.c.mu.Lock()
			defer r.c.mu.Unlock()
			r.c.of(1).applied = 11
		}
	}
	if _, err := r.apply(t); err == nil || !strings.Contains(err.Error(), "1 key of node2 (k)") || len(r.c.acts) > 0 {
		t.Errorf("%v; acts %q", err, r.c.acts)
	}
}

// TestFillLive: what the operator names stays.
func TestFillLive(t *testing.T) {
	o := LiveOptions{}
	o.fill("plan.yaml")
	if o.Backup != "plan.yaml.backup.db" || o.QuorumWait != 10*time.Minute || o.HookTimeout != 5*time.Minute ||
		o.Notice == nil || o.Output == nil {
		t.Errorf("%+v", o)
	}
	said := ""
	o = LiveOptions{Backup: "b", QuorumWait: 1, HookTimeout: 2, Notice: func(s string) { said = s }, Output: os.Stderr}
	o.fill("plan.yaml")
	o.Notice("x")
	if o.Backup != "b" || o.QuorumWait != 1 || o.HookTimeout != 2 || said != "x" || o.Output != os.Stderr {
		t.Errorf("%+v", o)
	}
}
