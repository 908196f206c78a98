//go:build e2e && linux

package main_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

const (
	// costBytes is the size of the database that is collected, COLLECT_COST_MIB in its place.
	costBytes = 200 << 20
	// costMemory is what collect may take of a server's host, in anonymous memory.
	costMemory = 20 << 20
	// costPairs is how often throughput is measured with and without a collection, one after the other.
	costPairs = 5
	// costLost is the share of throughput that may be lost, in the median of the pairs, where nothing else runs.
	// COLLECT_COST_STRICT asks for it; else a machine that others load decides, and twice the writes must go through.
	costLost, costLostBusy = 0.10, 0.5
)

// TestE2ECollectCost measures what collecting costs the member that is collected: the anonymous memory of the program,
// and the writes that a loaded server acknowledges while it runs. The program is the built one, so its embedded servers
// count if they are loaded.
func TestE2ECollectCost(t *testing.T) {
	size := costBytes
	if v := os.Getenv("COLLECT_COST_MIB"); v != "" {
		n, err := strconv.Atoi(v)
		must(t, err)
		size = n << 20
	}
	c := clustertest.Start(t, clustertest.Server(t, "3.6.16"), 1, clustertest.Options{
		Fsync: true, Args: []string{"--quota-backend-bytes=8589934592"}})
	fill(t, c.Client(0), size)
	written := writers(t, c.Endpoint(0))
	var lost []float64
	var anon int64
	for n := range costPairs {
		out := filepath.Join(t.TempDir(), "copy.tar.zst")
		before, took := window(written, 5*time.Second, nil)
		var cost costs
		during, busy := window(written, 0, func() {
			cost = collectCost(t, "collect", "--data-dir", c.DataDir(0), "--endpoints", c.Endpoint(0), "-o", out)
		})
		after, took2 := window(written, 5*time.Second, nil)
		st, err := os.Stat(out)
		must(t, err)
		must(t, os.Remove(out))
		without := (before + after) / (took + took2).Seconds()
		with := during / busy.Seconds()
		lost = append(lost, 1-with/without)
		anon = max(anon, cost.anon)
		t.Logf("pair %d: %.0f writes/s without, %.0f with; %.1f s, %.1f CPU seconds, %d MiB archive, %.1f MiB anonymous",
			n, without, with, busy.Seconds(), cost.cpu.Seconds(), st.Size()>>20, float64(cost.anon)/(1<<20))
	}
	slices.Sort(lost)
	median, most := lost[len(lost)/2], costLostBusy
	if os.Getenv("COLLECT_COST_STRICT") != "" {
		most = costLost
	}
	t.Logf("throughput lost: %.1f %% in the median; highest anonymous memory %.1f MiB", 100*median,
		float64(anon)/(1<<20))
	if anon == 0 || anon > costMemory {
		t.Errorf("collect took %d KiB of anonymous memory, %d may be taken", anon>>10, costMemory>>10)
	}
	if median > most {
		t.Errorf("%.0f %% of the writes were lost, %.0f %% may be", 100*median, 100*most)
	}
}

// fill fills a database with values that do not compress.
func fill(t *testing.T, cli *clientv3.Client, size int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	src := rand.NewChaCha8([32]byte{1})
	value := make([]byte, 512<<10)
	for n := 0; n*len(value) < size; n++ {
		_, _ = src.Read(value)
		_, err := cli.Put(ctx, fmt.Sprintf("/big/%05d", n), string(value))
		must(t, err)
	}
}

// writers load the server until the test ends, and count what it acknowledges.
func writers(t *testing.T, endpoint string) *atomic.Int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var n atomic.Int64
	var wg sync.WaitGroup
	for w := range 4 {
		cli, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
		must(t, err)
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := cli.Put(ctx, fmt.Sprintf("/load/%d/%d", w, i%500), strings.Repeat("x", 1000)); err == nil {
					n.Add(1)
				}
			}
			_ = cli.Close()
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return &n
}

// window counts the writes of some time, or while f runs.
func window(written *atomic.Int64, d time.Duration, f func()) (writes float64, took time.Duration) {
	begun, from := time.Now(), written.Load()
	if f != nil {
		f()
	} else {
		time.Sleep(d)
	}
	return float64(written.Load() - from), time.Since(begun)
}

// costs are what one process took.
type costs struct {
	cpu  time.Duration
	anon int64
}

// collectCost runs the built program and watches its anonymous memory.
func collectCost(t *testing.T, args ...string) (c costs) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built(t), args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	must(t, cmd.Start())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { c.anon = highestAnon(cmd.Process.Pid, stop) })
	err := cmd.Wait()
	close(stop)
	wg.Wait()
	if c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); err != nil {
		t.Fatal(errors.Join(err, errors.New(errs.String())))
	}
	return c
}

// highestAnon samples RssAnon of a process.
func highestAnon(pid int, stop <-chan struct{}) (highest int64) {
	for {
		select {
		case <-stop:
			return highest
		case <-time.After(2 * time.Millisecond):
		}
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		_, rest, ok := strings.Cut(string(status), "RssAnon:")
		if f := strings.Fields(rest); ok && len(f) > 0 {
			kb, _ := strconv.ParseInt(f[0], 10, 64)
			highest = max(highest, kb<<10)
		}
	}
}
