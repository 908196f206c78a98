//go:build e2e

package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/lab"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// planned is a diverged cluster that runs, and the plan to repair it.
type planned struct {
	t    *testing.T
	c    *lab.Cluster
	dir  string
	file string
	plan *plan.Plan
}

func plannedRepair(ctx context.Context, t *testing.T, server node.Server, o plan.Options) *planned {
	t.Helper()
	return plannedAfter(ctx, t, server, o, broken)
}

// plannedAfter is the same for a cluster that is broken in another way.
func plannedAfter(ctx context.Context, t *testing.T, server node.Server, o plan.Options,
	broken func(context.Context, *testing.T, *lab.Cluster)) *planned {
	t.Helper()
	p := &planned{t: t, dir: t.TempDir()}
	var err error
	if p.c, err = lab.Start(ctx, lab.Options{Dir: filepath.Join(p.dir, "lab"), Server: server}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.logs(); _ = p.c.Close() })
	broken(ctx, t, p.c)
	copies := filepath.Join(p.dir, "copies")
	if err := p.c.Copies(ctx, copies); err != nil {
		t.Fatal(err)
	}
	if p.plan, err = plan.New(ctx, []evidence.Spec{{Where: copies}}, try.In(""), o); err != nil {
		t.Fatal(err)
	}
	p.file = filepath.Join(p.dir, "plan.yaml")
	if err := p.plan.Save(p.file); err != nil {
		t.Fatal(err)
	}
	return p
}

// logs shows the end of what the servers wrote when the test failed.
func (p *planned) logs() {
	if !p.t.Failed() {
		return
	}
	files, _ := filepath.Glob(filepath.Join(p.dir, "lab", "sandbox", "logs", "*.log"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		p.t.Logf("%s: %v\n%s", filepath.Base(f), err, b[max(0, len(b)-3000):])
	}
}

// stops applies the plan with these hooks and wants that it stops at a step and says why.
func (p *planned) stops(ctx context.Context, o run.LiveOptions, step string, says ...string) {
	p.t.Helper()
	begin := time.Now()
	_, err := run.Apply(ctx, p.file, run.ApplyOptions{Mode: plan.Live, Live: o,
		Options: run.Hasty(run.Options{}, 9*time.Second, 40*time.Second)})
	var u *run.UnfinishedError
	if !errors.As(err, &u) || !strings.Contains(u.Step, step) {
		p.t.Fatalf("stopped by %v, want step %s to fail", err, step)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			p.t.Errorf("%v does not say %q", err, s)
		}
	}
	p.t.Logf("%.1f s: %v", time.Since(begin).Seconds(), err)
	st, err := run.Status(p.file)
	if err != nil || len(st.Runs) != 1 || st.Runs[0].State != "failed" {
		p.t.Fatalf("%v: %+v", err, st)
	}
}

// TestE2ELiveHooksThatLie: a hook that fails, that hangs, or that says it did what it did not stops the repair at once
// with the reason; when it does its work the same command goes on to the end.
func TestE2ELiveHooksThatLie(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.7.3"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
			defer cancel()
			server, err := node.External(ctx, clustertest.Server(t, version))
			if err != nil {
				t.Fatal(err)
			}
			p := plannedRepair(ctx, t, server, plan.Options{})
			hands := filepath.Join(p.dir, "hands")
			if err := os.Mkdir(hands, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("HANDS", hands)
			go serve(ctx, t, p.c, hands)
			liveHooksThatLie(ctx, p, hands)
		})
	}
}

func liveHooksThatLie(ctx context.Context, p *planned, hands string) {
	t := p.t
	honest := p.c.Live()
	honest.HostActions = nil
	honest.HookStop, honest.HookWipe, honest.HookStart = hook, hook, hook
	with := func(change func(*run.LiveOptions)) run.LiveOptions {
		o := honest
		change(&o)
		return o
	}
	w := load(ctx, t, p.c, p.plan.Best.Name)
	p.stops(ctx, with(func(o *run.LiveOptions) { o.HookStop = "echo no such unit; exit 3" }), "stop-node2",
		"hook stop of node2", "exit status 3", "no such unit")
	begin := time.Now()
	p.stops(ctx, with(func(o *run.LiveOptions) {
		o.HookStop, o.HookTimeout = `sleep 300 & echo $! > "$HANDS/sleeper"; echo waiting; wait`, time.Second
	}), "stop-node2", "still at work after 1s", "waiting")
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("a hook that hangs held the repair up for %v", d)
	}
	p.gone(filepath.Join(hands, "sleeper"))
	p.stops(ctx, with(func(o *run.LiveOptions) { o.HookStop = "true" }), "stop-node2", "it still answers",
		"said to be stopped")
	p.stops(ctx, with(func(o *run.LiveOptions) { o.HookWipe = "true"; o.HookStart = "true" }), "wait-node2",
		"nothing listens", "said to be started")
	p.stops(ctx, honest, "wait-node2", "old data dir")
	// The step that moves the dir aside is said to be done: what the message asks for is done by hand.
	live := p.c.Live()
	for _, action := range []string{"stop", "wipe"} {
		if err := live.HostActions(ctx, run.HostStep{Action: action, Member: p.plan.Member("node2")}); err != nil {
			t.Fatal(err)
		}
	}
	begin = time.Now()
	// A server that a hook starts keeps the hook's output open. That is not waited for.
	out, err := run.Apply(ctx, p.file, run.ApplyOptions{Mode: plan.Live,
		Options: run.Hasty(run.Options{}, 30*time.Second, time.Minute),
		Live:    with(func(o *run.LiveOptions) { o.HookStart += "\nsleep 40 &" })})
	if err != nil || !out.Reached || !out.Resumed {
		t.Fatalf("%v: %+v", err, out)
	}
	if d := time.Since(begin); d > 35*time.Second {
		t.Errorf("what a hook left running held the repair up for %v", d)
	}
	allThere(ctx, t, p.c, w.stop())
	if err := p.c.StopAll(ctx); err != nil {
		t.Fatal(err)
	}
	wantHealthy(t, p.c.DataDirs())
}

// gone wants that the process whose id is in a file has ended.
func (p *planned) gone(file string) {
	p.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		p.t.Fatal(err)
	}
	for range 50 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.t.Errorf("process %d of a hook that was ended still runs", pid)
}

// zombie tells whether a process has ended and nobody has asked how.
func zombie(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(b), ") Z ")
}

// TestE2ELiveUnlistedWrites: the operator keeps the member that lacks writes. Those up to the copies are in the plan.
// What clients wrote since is found in the running cluster, and the repair refuses until it is accepted; then it is in
// the snapshot of the member that had it.
func TestE2ELiveUnlistedWrites(t *testing.T) { onTwoLines(t, liveUnlistedWrites) }

// onTwoLines runs a test with servers of two lines.
func onTwoLines(t *testing.T, test func(ctx context.Context, t *testing.T, server node.Server)) {
	for _, version := range []string{"3.5.35", "3.6.16"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
			defer cancel()
			server, err := node.External(ctx, clustertest.Server(t, version))
			if err != nil {
				t.Fatal(err)
			}
			test(ctx, t, server)
		})
	}
}

func liveUnlistedWrites(ctx context.Context, t *testing.T, server node.Server) {
	p := plannedRepair(ctx, t, server, plan.Options{Best: "node2"})
	if p.plan.Lost.CommittedEntries != 40 || p.plan.Member("node1").Action != plan.Replace {
		t.Fatalf("lost %+v, members %+v", p.plan.Lost, p.plan.Members)
	}
	if n, err := p.c.Write(ctx, 0, "/late/", 5); err != nil || n != 5 {
		t.Fatal(n, err)
	}
	if n, err := p.c.Write(ctx, 1, "/by-all/", 5); err != nil || n != 5 {
		t.Fatal(n, err)
	}
	var notices []string
	live := p.c.Live()
	live.Notice = func(s string) { notices = append(notices, s) }
	_, err := run.Apply(ctx, p.file, run.ApplyOptions{Mode: plan.Live, Live: live})
	var refused *refusal.Error
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "5 keys of node1 (/late/0000, /late/0001, ") ||
		!strings.Contains(err.Error(), "5 keys of node3") {
		t.Fatal(err)
	}
	if st, err := run.Status(p.file); err != nil || st.Runs[0].State != "given up" || len(st.Runs[0].Steps) > 0 {
		t.Fatalf("%v: %+v", err, st)
	}
	live.AcceptLost = true
	out, err := run.Apply(ctx, p.file, run.ApplyOptions{Mode: plan.Live, Live: live})
	if err != nil || !out.Reached {
		t.Fatalf("%v: %+v", err, out)
	}
	unlisted := map[string]int{}
	for _, d := range out.Drift {
		unlisted[d.Member] += d.Unlisted
	}
	// at the beginning, and before each is taken out
	if unlisted["node1"] != 10 || unlisted["node2"] != 0 || unlisted["node3"] != 10 {
		t.Errorf("drift %+v", out.Drift)
	}
	if text := strings.Join(notices, "\n"); !strings.Contains(text,
		"40 committed effects that node2 lacks are lost") || !strings.Contains(text, "node1 went from revision") {
		t.Errorf("notices: %s", text)
	}
	saved, err := os.ReadFile(p.file + ".backup.node1.db")
	if err != nil || !strings.Contains(string(saved), "/late/0004") {
		t.Errorf("the snapshot of node1 does not hold what only it had: %v", err)
	}
	for i := range 3 {
		cli, err := p.c.Client(i)
		if err != nil {
			t.Fatal(err)
		}
		for prefix, want := range map[string]int64{"/late/": 0, "/by-all/": 5} {
			if r, err := cli.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil ||
				r.Count != want {
				t.Errorf("node%d: %s: %v, %v; want %d keys", i+1, prefix, r, err, want)
			}
		}
	}
}

// TestE2ELiveCompactedMeanwhile: what was compacted away since the copies cannot be compared, and that is said. The
// operator reads it before anything is begun, and does not begin.
func TestE2ELiveCompactedMeanwhile(t *testing.T) { onTwoLines(t, liveCompactedMeanwhile) }

func liveCompactedMeanwhile(ctx context.Context, t *testing.T, server node.Server) {
	p := plannedRepair(ctx, t, server, plan.Options{})
	if n, err := p.c.Write(ctx, 1, "/by-all/", 20); err != nil || n != 20 {
		t.Fatal(n, err)
	}
	cli, err := p.c.Client(0)
	if err != nil {
		t.Fatal(err)
	}
	at := p.plan.Member("node2").Revision + 5
	if _, err := cli.Compact(ctx, at, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	var notices, asked []string
	live := p.c.Live()
	live.HostActions = nil
	live.Notice = func(s string) { notices = append(notices, s) }
	live.Prompt = func(_ context.Context, text []string) error {
		asked = append(asked, text...)
		return run.ErrStopped
	}
	_, err = run.Apply(ctx, p.file, run.ApplyOptions{Mode: plan.Live, Live: live})
	var refused *refusal.Error
	if !errors.As(err, &refused) || !strings.Contains(strings.Join(asked, "\n"), "nothing was changed yet") {
		t.Errorf("%v; asked %q", err, asked)
	}
	text := strings.Join(notices, "\n")
	if want := "node2 was compacted at revision " + strconv.FormatInt(at, 10) +
		" meanwhile"; !strings.Contains(text, want) || strings.Contains(text, "it accepted nothing that") {
		t.Errorf("%q is not said:\n%s", want, text)
	}
}
