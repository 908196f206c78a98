package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/release"
)

// event does what happens between two bursts of writes.
func (h *History) event(name string) {
	h.say("event %s", name)
	switch name {
	case "restart":
		h.restart(h.any())
	case "kill":
		h.kill(h.any())
	case "pause":
		h.pause(h.any())
	case "defrag":
		h.defrag(h.any())
	case "backup":
		h.backup(h.any())
	case "lag":
		h.lag(h.any())
	case "learner":
		h.addLearner()
	case "promote":
		h.promote()
	case "remove":
		h.remove(h.any())
	case "dismiss":
		h.dismiss()
	case "replace":
		h.replace(h.any())
	case "restore":
		h.restore()
	case "force":
		h.force()
	case "readdress":
		h.readdress(h.any())
	case "noauth":
		h.withoutAuth()
	case "nospace":
		h.noSpace()
	case "move":
		h.move(h.any())
	case "refuse":
		h.refuse(h.any())
	case "crowd":
		h.crowd(20)()
	}
}

// crowd starts a client for each running voter, which make n requests each at the same time: entries of several
// proposers alternate, and guards lose races. It returns a function that waits for their end.
func (h *History) crowd(n int) (wait func()) {
	var clients sync.WaitGroup
	h.aside(func() {
		for _, i := range h.voters() {
			one := h.alone(i, h.c.Client(i))
			clients.Go(func() { one.burst(n) })
		}
	})
	return clients.Wait
}

// alone is the client of member i with its own random numbers, values and leases.
func (h *History) alone(i int, cli *clientv3.Client) *History {
	return &History{t: h.t, rng: rand.New(rand.NewPCG(h.rng.Uint64(), 1)), s: h.s, c: h.c, only: cli,
		counter: h.counter + 1000*(i+1), leases: slices.Clone(h.leases), gone: h.gone, learners: h.learners}
}

// noSpace fills the database until writes are refused, continues, and usually makes room again.
func (h *History) noSpace() {
	cli := h.client()
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	var err error
	for n := 0; n < 40 && err == nil; n++ {
		_, err = cli.Put(ctx, fmt.Sprintf("/app/fill%d", n%3), strings.Repeat("x", 50_000)+fmt.Sprint(n))
	}
	h.say("fill: %v", err)
	h.burst(10)
	if h.rng.IntN(3) == 0 {
		return
	}
	_, err = cli.Delete(ctx, "/app/fill", clientv3.WithPrefix())
	h.say("delete: %v", err)
	h.compact()
	for _, i := range h.voters() {
		h.defrag(i)
	}
	_, err = cli.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	h.say("disarm: %v", err)
}

// kill ends a member at once, in the middle of writes and sometimes of a compaction, lets the others continue and
// starts it again.
func (h *History) kill(i int) {
	delay, compact := time.Duration(h.rng.IntN(60))*time.Millisecond, h.rng.IntN(2) == 0
	if compact {
		h.compact()
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		time.Sleep(delay)
		h.c.Kill(i)
	}()
	h.aside(func() { h.burst(6) })
	<-killed
	if len(h.voters()) > h.members()/2 {
		h.settle()
		h.burst(5)
	}
	h.c.StartProcess(i)
	h.c.WaitServing(i)
	h.settle()
}

// aside makes requests whose number depends on time. What they draw is not missing from the draws that follow.
func (h *History) aside(do func()) {
	rng, counter, leases := h.rng, h.counter, len(h.leases)
	h.rng = rand.New(rand.NewPCG(rng.Uint64(), 1))
	do()
	h.rng, h.counter, h.leases = rng, counter+100, h.leases[:leases]
}

// move makes another member the leader.
func (h *History) move(to int) {
	leader := h.c.Leader()
	if leader == to {
		return
	}
	id := h.memberID(to)
	ctx, cancel := h.context()
	defer cancel()
	_, err := h.c.Client(leader).MoveLeader(ctx, id)
	h.say("leader moves to %s: %v", h.c.Name(to), err)
	h.settle()
}

// pause stops the process of a member from running for a while.
func (h *History) pause(i int) {
	h.c.Pause(i)
	time.Sleep(1200 * time.Millisecond)
	h.c.Resume(i)
	h.settle()
}

func (h *History) defrag(i int) {
	ctx, cancel := h.context()
	defer cancel()
	_, err := h.c.Client(i).Defragment(ctx, h.c.Endpoint(i))
	h.say("defragment %s: %v", h.c.Name(i), err)
}

// backup saves a snapshot, which becomes a further source.
func (h *History) backup(i int) {
	ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
	defer cancel()
	r, err := h.c.Client(i).Snapshot(ctx)
	if err != nil {
		h.say("backup: %v", err)
		return
	}
	defer func() { _ = r.Close() }()
	h.backups++
	name := fmt.Sprintf("backup%d", h.backups)
	f, err := os.Create(filepath.Join(h.dir, name+".db"))
	if err != nil {
		h.t.Fatal(err)
	}
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Close()); err != nil {
		h.say("backup: %v", err)
		return
	}
	h.extras = append(h.extras, Source{Name: name, Path: f.Name(), Aged: true})
}

// lag stops a member, lets the others write and compact, and starts it again or, sometimes, leaves it stopped.
func (h *History) lag(i int) {
	if len(h.voters())-1 <= h.members()/2 || len(h.lagging) > 0 {
		h.restart(i)
		return
	}
	h.c.Stop(i)
	h.settle()
	h.burst(h.s.Burst)
	h.compact()
	h.burst(3 + h.rng.IntN(10))
	if h.rng.IntN(3) == 0 {
		h.say("%s lags", h.c.Name(i))
		h.lagging[i] = true
		return
	}
	h.c.StartProcess(i)
	h.c.WaitServing(i)
	h.settle()
}

// restore gives every member a data dir made from a new backup, and the cluster continues with them; or only the first,
// which the others join with empty data dirs. Backups remain sources, data dirs from before do not.
func (h *History) restore() {
	h.c.WaitApplied()
	n := len(h.extras)
	h.backup(h.any())
	if len(h.extras) == n {
		h.t.Fatal("no backup to restore")
	}
	file := h.extras[n].Path
	h.extras = slices.DeleteFunc(h.extras, func(s Source) bool { return filepath.Ext(s.Path) != ".db" })
	h.c.StopAll()
	var all []int
	for i := range h.c.Size() {
		h.c.Wipe(i)
		all = append(all, i)
	}
	var bump []string
	if h.rng.IntN(3) == 0 {
		bump = []string{"--bump-revision", "1000", "--mark-compacted"}
	}
	clear(h.lagging)
	clear(h.older) // another log
	h.restored = true
	if h.rng.IntN(3) == 0 {
		h.restoreDirs(file, bump, all[:1])
		h.c.StartAlone()
		h.rejoin(all[1:])
		return
	}
	h.restoreDirs(file, bump, all)
	for _, i := range all {
		h.c.StartProcess(i)
	}
	for _, i := range all {
		h.c.WaitServing(i)
	}
	h.kube = kube{}
	h.settle()
}

// restoreDirs makes the data dirs of the members of a new cluster from a backup.
func (h *History) restoreDirs(file string, bump []string, members []int) {
	h.say("restore %v on %d", bump, len(members))
	tool := "etcdutl-3.6"
	if h.s.has(release.SnapFileUnused) {
		tool = "etcdutl-3.7"
	}
	tool = filepath.Join(filepath.Dir(clustertest.Server(h.t, h.s.Line)), tool)
	var initial []string
	for _, i := range members {
		initial = append(initial, h.c.Name(i)+"="+h.c.PeerURL(i))
	}
	for _, i := range members {
		ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
		args := []string{"snapshot", "restore", file, "--name", h.c.Name(i), "--data-dir", h.c.DataDir(i),
			"--initial-cluster", strings.Join(initial, ","),
			"--initial-cluster-token", "clustertest", "--initial-advertise-peer-urls", h.c.PeerURL(i)}
		out, err := exec.CommandContext(ctx, tool, append(args, bump...)...).CombinedOutput()
		cancel()
		if err != nil {
			h.t.Fatalf("restore: %v\n%s", err, out)
		}
	}
}

// olderCopy copies the data dir of a member that is stopped for that.
func (h *History) olderCopy(i int) {
	h.say("%s is stopped and copied", h.c.Name(i))
	h.c.Stop(i)
	dst := filepath.Join(h.dir, "older-"+h.c.Name(i))
	if err := evidencetest.CopyTo(h.c.DataDir(i), dst); err != nil {
		h.t.Fatal(err)
	}
	h.older[h.c.Name(i)] = dst
	h.c.StartProcess(i)
	h.c.WaitServing(i)
	h.settle()
}

// liveCopy copies the data dir of a member while it runs: the log first, then, after more writes, the rest.
func (h *History) liveCopy(i int) {
	dst := filepath.Join(h.dir, "live-"+h.c.Name(i), "member")
	if err := os.MkdirAll(dst, 0o700); err != nil {
		h.t.Fatal(err)
	}
	from := filepath.Join(h.c.DataDir(i), "member")
	err := evidencetest.CopyTo(filepath.Join(from, "wal"), filepath.Join(dst, "wal"))
	h.burst(12)
	time.Sleep(200 * time.Millisecond)
	if err = errors.Join(err, evidencetest.CopyTo(filepath.Join(from, "snap"),
		filepath.Join(dst, "snap"))); err != nil {
		h.say("no live copy: %v", err) // a file was purged or renamed meanwhile
		return
	}
	h.live[h.c.Name(i)] = filepath.Dir(dst)
}
