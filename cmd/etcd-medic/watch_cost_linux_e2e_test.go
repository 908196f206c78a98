//go:build e2e && linux

package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

const (
	// watchShare is what watch may cost of a small cluster's work, its own processor time and the servers' together.
	watchShare = 0.01
	// watchInterval is the default of --interval; the test lets rounds be made every second and scales.
	watchInterval = 15 * time.Second
	// watchKeys and watchWrites per second make a small cluster.
	watchKeys, watchWrites = 2000, 100
	// watchRounds are made in each of watchPairs windows, with one of the same length without watch in between.
	watchRounds, watchPairs = 20, 3
)

// TestE2EWatchCost measures processor time, which a busy machine does not change much: that of a round of watch on
// servers that do nothing else, against that of the same servers at a modest load.
func TestE2EWatchCost(t *testing.T) {
	c := clustertest.Start(t, clustertest.Server(t, "3.6.16"), 3, clustertest.Options{TLS: true,
		Args: []string{"--heartbeat-interval=200", "--election-timeout=2000", "--bcrypt-cost=4"}})
	user := c.EnableAuth()
	for n := range watchKeys {
		c.Put(0, fmt.Sprintf("/registry/%d", n), strings.Repeat("x", 1000))
	}
	c.WaitEqual()
	w := startWatch(t, c, user)
	w.await(t, 3) // has logged in, and knows the members
	w.pause(t)
	var round, length, idle, own time.Duration
	for range watchPairs {
		begun, before := time.Now(), c.CPU()
		time.Sleep(watchRounds * time.Second)
		rate := float64(c.CPU()-before) / float64(time.Since(begun))

		w.resume(t)
		begun, before = time.Now(), c.CPU()
		mine := w.cpu(t)
		w.await(t, watchRounds)
		took := time.Since(begun)
		mine = w.cpu(t) - mine
		used := c.CPU() - before + mine
		w.pause(t)
		length, idle = length+took, idle+time.Duration(rate*float64(took))
		round, own = round+used, own+mine
	}
	round = (round - idle) / (watchPairs * watchRounds)

	begun, before := time.Now(), c.CPU()
	writes := steady(t, c, watchRounds*watchWrites/2)
	busy := float64(c.CPU()-before) / float64(time.Since(begun))
	// what a server does per write does not depend on how many come: a slow machine is not to make the load smaller
	base := float64(idle) / float64(length)
	work := base + (busy-base)*watchWrites*time.Since(begun).Seconds()/float64(writes)
	share := float64(round) / float64(watchInterval) / work
	const ms = float64(time.Millisecond)
	t.Logf("a round takes %.1f ms of processor time, %.1f of them watch itself; idle servers take %.2f %% of a "+
		"processor, at %d writes/s %.1f %%; watch is %.2f %% of that", float64(round)/ms,
		float64(own)/(watchPairs*watchRounds*ms), 100*base, watchWrites, 100*work, 100*share)
	if share > watchShare {
		t.Errorf("watch takes %.2f %% of what the servers take, %.0f %% is allowed", 100*share, 100*watchShare)
	}
}

// steady writes watchWrites a second, as far as the machine lets it, until that many are acknowledged.
func steady(t *testing.T, c *clustertest.Cluster, want int64) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var n atomic.Int64
	var wg sync.WaitGroup
	cli := c.Client(0)
	tick := time.NewTicker(time.Second / watchWrites)
	defer tick.Stop()
	value := strings.Repeat("y", 1000)
	for range 4 {
		wg.Go(func() {
			for n.Load() < want && ctx.Err() == nil {
				<-tick.C
				if _, err := cli.Put(ctx, fmt.Sprintf("/registry/%d", n.Load()%watchKeys), value); err == nil {
					n.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n.Load() < want {
		t.Fatalf("the servers took %d writes in 5 minutes, %d make the case", n.Load(), want)
	}
	return n.Load()
}

// watcher is the built program that watches, and the lines that it has logged.
type watcher struct {
	cmd    *exec.Cmd
	mu     sync.Mutex
	rounds int
	log    bytes.Buffer
}

func startWatch(t *testing.T, c *clustertest.Cluster, user string) *watcher {
	t.Helper()
	ca, cert, key := c.Certificates()
	w := &watcher{cmd: exec.Command(built(t), "watch", "--interval", "1s", "--verbose", "--endpoints",
		strings.Join([]string{c.Endpoint(0), c.Endpoint(1), c.Endpoint(2)}, ","), "--cacert", ca, "--cert", cert,
		"--key", key)}
	w.cmd.Env = append(os.Environ(), "ETCD_MEDIC_USER="+user)
	w.cmd.Stderr = w
	must(t, w.cmd.Start())
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		if t.Failed() {
			t.Logf("watch:\n%s", w.log.Bytes())
		}
	})
	return w
}

// Write counts the rounds in what the program logs.
func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds += bytes.Count(p, []byte("msg=round "))
	return w.log.Write(p)
}

// await waits for n more rounds.
func (w *watcher) await(t *testing.T, n int) {
	t.Helper()
	count := func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.rounds }
	until, deadline := count()+n, time.Now().Add(5*time.Minute)
	for ; count() < until; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d rounds in 5 minutes", n-until+count(), n)
		}
	}
}

func (w *watcher) pause(t *testing.T)  { t.Helper(); must(t, w.cmd.Process.Signal(syscall.SIGSTOP)) }
func (w *watcher) resume(t *testing.T) { t.Helper(); must(t, w.cmd.Process.Signal(syscall.SIGCONT)) }
func (w *watcher) cpu(t *testing.T) time.Duration {
	t.Helper()
	return clustertest.CPU(t, w.cmd.Process.Pid)
}
