//go:build e2e

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

// attended is a real cluster under writes whose members are replaced while others end and come back.
type attended struct {
	*testing.T
	s    *spoiled
	h    *hands
	p    *plan.Plan
	file string
	// standby is a host that is to take the place of node2, -1 without one.
	standby int
	// stays are the hosts of members that are neither the best nor replaced.
	stays []int
	live  LiveOptions
	w     *pen
}

// attending says what cluster attend makes.
type attending struct {
	version string
	members int
	// replace are the members that the plan replaces; standby lets a new one take the place of node2.
	replace []string
	standby bool
	// spoil, if set, damages the copies that the plan is made of.
	spoil func(copies string)
}

// attend makes a cluster and the plan to replace some of its members. The cluster serves; nothing is wrong with it.
func (o attending) attend(t *testing.T) *attended {
	t.Helper()
	version, n, standby, replace := o.version, o.members, o.standby, o.replace
	s := &spoiled{T: t, c: clustertest.Start(t, clustertest.Server(t, version), n,
		clustertest.Options{SnapshotCount: 50}), version: version, made: map[string]string{}}
	s.put(0, 60)
	s.c.WaitApplied()
	s.c.StopAll()
	copies := filepath.Join(t.TempDir(), "copies")
	for i := range n {
		ok(t, os.MkdirAll(copies, 0o700))
		ok(t, os.Rename(evidencetest.Copy(t, s.c.DataDir(i)), filepath.Join(copies, s.c.Name(i))))
	}
	if o.spoil != nil {
		o.spoil(copies)
	}
	for i := range n {
		s.c.StartProcess(i)
	}
	for i := range n {
		s.c.WaitServing(i)
	}
	po := plan.Options{Best: "node1", Replace: replace, Compare: compare.Options{Version: "test"}}
	a := &attended{T: t, s: s, file: filepath.Join(t.TempDir(), "plan.yaml"), standby: -1}
	if standby {
		a.standby = s.c.Spare()
		po.Standby = []plan.Standby{{Name: s.c.Name(a.standby), URL: s.c.PeerURL(a.standby), For: "node2"}}
	}
	p, err := plan.New(t.Context(), specsOf(copies), try.In(""), po)
	ok(t, err)
	a.p = p
	ok(t, p.Save(a.file))
	a.h = &hands{s: s, p: p}
	for i := range n {
		if m := a.h.of(i); m.Action == plan.Keep {
			a.stays = append(a.stays, i)
		}
		a.live.Endpoints = append(a.live.Endpoints, s.c.Endpoint(i))
	}
	if standby {
		a.live.Endpoints = append(a.live.Endpoints, s.c.Endpoint(a.standby))
	}
	if len(replace) != n-1-len(a.stays) {
		t.Fatalf("%+v", p.Members)
	}
	a.live.Backup = filepath.Join(t.TempDir(), "backup.db")
	a.live.QuorumWait = 2 * time.Minute
	a.live.Notice = func(n string) { t.Log("notice:", n) }
	a.live.HostActions = a.do
	a.w = a.write()
	return a
}

// do does a host step and looks whether a majority of the voters still runs: nothing but the tool may take it away.
func (a *attended) do(ctx context.Context, st HostStep) error {
	a.Helper()
	err := a.h.do(ctx, st)
	if up, voters := a.running(); up < voters/2+1 {
		a.Errorf("after %s of %s %d of %d voters run", st.Action, st.Member.Name, up, voters)
	}
	return err
}

// running counts the voters in the member list that the best member has, and those whose process runs.
func (a *attended) running() (up, voters int) {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), 20*time.Second)
	defer cancel()
	l, err := a.s.c.Client(0).MemberList(ctx, clientv3.WithSerializable())
	ok(a.T, err)
	for _, m := range l.Members {
		if m.GetIsLearner() {
			continue
		}
		voters++
		for i := range a.s.c.Size() {
			if slices.Contains(m.GetPeerURLs(), a.s.c.PeerURL(i)) && a.s.c.Running(i) {
				up++
			}
		}
	}
	return up, voters
}

// spares tells whether the cluster has one running voter more than it needs.
func (a *attended) spares() bool {
	up, voters := a.running()
	return up-1 >= voters/2+1
}

// reviveAll starts what was ended and stays.
func (a *attended) reviveAll() {
	for _, i := range a.stays {
		if !a.s.c.Running(i) {
			a.s.c.StartProcess(i)
		}
	}
}

func (a *attended) apply(ctx context.Context, o Options) (*Outcome, error) {
	out, err := Apply(ctx, a.file, ApplyOptions{Mode: plan.Live, Live: a.live,
		Options: Hasty(o, 45*time.Second, 2*time.Minute)})
	a.Log("run ended with", err)
	return out, err
}

// finish wants every acknowledged write on every member, and that writing was never held up for longer than an election
// takes.
func (a *attended) finish(out *Outcome, err error) {
	a.Helper()
	keys, gap := a.w.stop()
	mustReach(a.T, out, err)
	a.reviveAll()
	if len(keys) < 3 || gap > longest {
		a.Errorf("%d writes were acknowledged, the longest time without one was %v", len(keys), gap)
	}
	var there []int
	for i := range a.s.c.Size() {
		if i != 1 || a.standby < 0 {
			there = append(there, i)
			a.s.c.WaitServing(i)
		}
	}
	a.s.c.WaitApplied()
	for _, i := range there {
		a.s.holdsAll(i, a.p)
		r, err := a.s.c.Client(i).Get(a.Context(), "/pen/", clientv3.WithPrefix(), clientv3.WithSerializable(),
			clientv3.WithKeysOnly())
		ok(a.T, err)
		have := map[string]bool{}
		for _, kv := range r.Kvs {
			have[string(kv.Key)] = true
		}
		if missing := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return have[k] }); len(missing) > 0 {
			a.Errorf("%s lacks %d of %d acknowledged writes: %v…", a.s.c.Name(i), len(missing), len(keys), missing[0])
		}
	}
}

// longest is the longest time without a write: an election, on a machine that does much else. A cluster without a
// majority writes nothing for as long as it has none.
const longest = 20 * time.Second

// pen writes through all members by turns.
type pen struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	keys   []string
	gap    time.Duration
}

func (a *attended) write() *pen {
	ctx, cancel := context.WithCancel(a.Context())
	w := &pen{cancel: cancel}
	var clients []*clientv3.Client
	for i := range a.s.c.Size() {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{a.s.c.Endpoint(i)}, DialTimeout: 5 * time.Second,
			Logger: zap.NewNop()})
		ok(a.T, err)
		clients = append(clients, c)
	}
	a.Cleanup(func() {
		w.stop()
		for _, c := range clients {
			_ = c.Close()
		}
	})
	w.wg.Go(func() {
		last := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			key := fmt.Sprintf("/pen/%06d", n)
			call, done := context.WithTimeout(ctx, 500*time.Millisecond) // members that are down are among them
			_, err := clients[n%len(clients)].Put(call, key, "x")
			done()
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				w.keys = append(w.keys, key)
				w.gap, last = max(w.gap, time.Since(last)), time.Now()
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	return w
}

func (w *pen) stop() (keys []string, gap time.Duration) {
	w.cancel()
	w.wg.Wait()
	return w.keys, w.gap
}

// TestE2EKeptVoterIsDown: the tool does not stop a second voter, gives up after its time with the cluster as it was,
// and goes on once the voter is back; also when that ends again between and during steps.
func TestE2EKeptVoterIsDown(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.7.3"} {
		t.Run(version, func(t *testing.T) {
			a := attending{version: version, members: 3, replace: []string{"node2"}}.attend(t)
			a.s.c.Kill(2)
			a.live.QuorumWait = 3 * time.Second
			out, err := a.apply(t.Context(), Options{})
			var u *UnfinishedError
			if !errors.As(err, &u) || !errors.Is(err, errNoMajority) || !strings.Contains(err.Error(), "node3") ||
				!a.s.c.Running(1) {
				t.Fatalf("%v: %+v; node2 runs: %v", err, out, a.s.c.Running(1))
			}
			w, err := Abort(a.file)
			if err != nil || len(w.Members) > 0 || w.UnderWay == nil || !strings.Contains(w.UnderWay.ID, "node2") {
				t.Errorf("%v: %+v", err, w)
			}
			a.s.c.Put(0, "/still", "serves")
			a.s.made = dropKey(a.s.made, "/still")
			a.live.QuorumWait = 2 * time.Minute
			a.s.c.StartProcess(2)
			ended := map[string]bool{}
			kill := func(r Record, flushed bool) {
				// With node2 out there is none to spare: node3 ends and comes back at once, as after a crash.
				if flushed && r.State == StateBegin && slices.Contains([]string{"remove", "add-learner", "wait"},
					kindOf(a.p, r.Step)) && !ended[r.Step] {
					ended[r.Step] = true
					a.s.c.Kill(2)
					time.Sleep(300 * time.Millisecond)
					a.s.c.StartProcess(2)
				}
			}
			out, err = a.apply(t.Context(), Observed(Options{}, kill))
			if len(ended) < 3 {
				t.Errorf("node3 ended at %v only", ended)
			}
			if out != nil && !slices.ContainsFunc(out.Notes,
				func(n string) bool { return strings.Contains(n, "one voter fewer for ") }) {
				t.Errorf("notes %q", out.Notes)
			}
			a.finish(out, err)
		})
	}
}

// TestE2EStandbyLive: a new member on another host takes the place of one that runs, and of one that is down, while
// writes go on.
func TestE2EStandbyLive(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.7.3"} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/down=%v", version, down), func(t *testing.T) { standbyLive(t, version, down) })
		}
	}
}

func standbyLive(t *testing.T, version string, down bool) {
	a := attending{version: version, members: 3, replace: []string{"node2"}, standby: true}.attend(t)
	says := "no voter fewer while node4 took the place of node2"
	if down {
		a.s.c.Kill(1)
		says = "node2 was down and was removed before node4 was promoted"
	}
	fewest := 3
	out, err := a.apply(t.Context(), Observed(Options{}, func(_ Record, flushed bool) {
		if up, _ := a.running(); flushed {
			fewest = min(fewest, up)
		}
	}))
	if out != nil && !slices.ContainsFunc(out.Notes, func(n string) bool { return strings.Contains(n, says) }) {
		t.Errorf("%q is not among the notes %q", says, out.Notes)
	}
	if !down && fewest < 3 {
		t.Errorf("%d voters ran at one moment", fewest)
	}
	a.finish(out, err)
	if _, err := os.Stat(a.s.c.DataDir(1)); err == nil {
		t.Error("the data dir of node2 is in its place")
	}
}

func dropKey(m map[string]string, key string) map[string]string { delete(m, key); return m }

func kindOf(p *plan.Plan, step string) string {
	for _, s := range p.Way(plan.Live).Steps {
		if s.ID == step {
			return string(s.Kind)
		}
	}
	return ""
}

// TestE2ERandomLive repairs running clusters while members that stay are killed and come back, and the tool is ended
// and started again, at random points. The tool never takes the majority away and no acknowledged write is lost.
// ETCD_MEDIC_LIVE_SEEDS=N plays N seeds, ETCD_MEDIC_LIVE_SEED=K only that one.
func TestE2ERandomLive(t *testing.T) {
	seeds, err := strconv.Atoi(cmp.Or(os.Getenv("ETCD_MEDIC_LIVE_SEEDS"), "2"))
	ok(t, err)
	first := 1
	if only := os.Getenv("ETCD_MEDIC_LIVE_SEED"); only != "" {
		first, err = strconv.Atoi(only)
		ok(t, err)
		seeds = 1
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomLive(t, uint64(seed)) })
	}
}

func randomLive(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	version := []string{"3.5.35", "3.6.16", "3.7.3"}[seed%3]
	n := []int{3, 5, 4}[rnd.IntN(3)]
	replace := []string{"node2", "node3"}[:1+rnd.IntN(min(2, n-2))]
	t.Logf("seed %d: etcd %s, %d members, %q are replaced", seed, version, n, replace)
	a := attending{version: version, members: n, replace: replace}.attend(t)
	kills, stops := 0, 0
	toggle := func() {
		i := a.stays[rnd.IntN(len(a.stays))]
		switch {
		case !a.s.c.Running(i):
			a.s.c.StartProcess(i)
		case a.spares():
			kills++
			a.s.c.Kill(i)
		}
	}
	a.live.Notice = func(s string) {
		t.Log("notice:", s)
		if strings.HasPrefix(s, "waiting: ") {
			a.reviveAll()
		}
	}
	act := a.live.HostActions
	a.live.HostActions = func(ctx context.Context, st HostStep) error {
		err := act(ctx, st)
		if rnd.IntN(3) == 0 { // during the step
			toggle()
		}
		return err
	}
	var out *Outcome
	var err error
	for try := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		quit := rnd.IntN(30)
		out, err = a.apply(ctx, Observed(Options{}, func(_ Record, flushed bool) {
			if flushed && rnd.IntN(4) == 0 {
				toggle()
			}
			if quit--; quit == 0 && try < 4 {
				stops++
				cancel()
			}
		}))
		cancel()
		if err == nil {
			break
		}
		a.reviveAll()
	}
	t.Logf("%d members ended, the tool %d times", kills, stops)
	a.finish(out, err)
}
