//go:build e2e && linux

package main_test

import (
	"context"
	"encoding/json"
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

	"github.com/etcd-medic/etcd-medic/collect"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

const (
	// costBytes is the size of the database whose collection must stay below costMemory, COLLECT_COST_MIB in its place.
	costBytes = 200 << 20
	// costMemory is what collect may take of a server's host, in anonymous memory.
	costMemory = 20 << 20
	// costSmall is the size of the database that is collected again and again while throughput is measured: with and
	// without a collection, costPairs times in turn, so that what else happens on the machine meets both.
	costSmall, costPairs = 40 << 20, 6
	// costLost is the share of throughput that may be lost. That of acknowledged writes, in the median, is held to it
	// with COLLECT_COST_STRICT; else a machine that others load decides, and it is costLostBusy.
	costLost, costLostBusy = 0.10, 0.9
	// costProcessors is how many processors the server has whose throughput is computed from processor time.
	costProcessors = 2
)

// TestE2ECollectMemory measures the anonymous memory of the built program, so its embedded servers count if they are
// loaded.
func TestE2ECollectMemory(t *testing.T) {
	size := costBytes
	if v := os.Getenv("COLLECT_COST_MIB"); v != "" {
		n, err := strconv.Atoi(v)
		must(t, err)
		size = n << 20
	}
	c := clustertest.Start(t, clustertest.Server(t, "3.6.16"), 1, clustertest.Options{
		Args: []string{"--quota-backend-bytes=8589934592"}})
	fill(t, c.Client(0), size)
	written := writers(t, c.Endpoint(0))
	out := filepath.Join(t.TempDir(), "copy.tar.zst")
	cost := collectCost(t, "collect", "--limit-rate", "0", "--data-dir", c.DataDir(0), "--endpoints", c.Endpoint(0),
		"-o",
		out)
	st, err := os.Stat(out)
	must(t, err)
	t.Logf("database of %d MiB, archive of %d MiB, %d writes meanwhile: %.1f MiB anonymous, %.1f CPU seconds", size>>20,
		st.Size()>>20, written.Load(), float64(cost.anon)/(1<<20), cost.cpu.Seconds())
	if st.Size() < int64(size) {
		t.Errorf("the archive has %d bytes: the case is not made", st.Size())
	}
	if cost.anon == 0 || cost.anon > costMemory {
		t.Errorf("collect took %d KiB of anonymous memory, %d may be taken", cost.anon>>10, costMemory>>10)
	}
}

// TestE2ECollectThroughput measures what a loaded server loses while it is collected, with its log on a disk that is
// synced, as in production: the writes that it acknowledges, and those that it has processor time for. Other work on
// the machine spoils the former; the latter is what processors that are never idle would lose.
func TestE2ECollectThroughput(t *testing.T) {
	for _, rate := range []int{15, 5} { // MiB a second; 15 is the default
		t.Run(fmt.Sprintf("%dM", rate), func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, "3.6.16"), 1, clustertest.Options{Fsync: true})
			fill(t, c.Client(0), costSmall)
			written := writers(t, c.Endpoint(0))
			out := filepath.Join(t.TempDir(), "copy.tar.zst")
			var copies []costRun
			before := observe(c, written, func() { time.Sleep(2 * time.Second) })
			for range costPairs {
				var m costRun
				var cost costs
				ends := logEnds(t, c.DataDir(0))
				m.during = observe(c, written, func() {
					cost = collectCost(t, "collect", "--limit-rate", fmt.Sprintf("%dM", rate), "--data-dir",
						c.DataDir(0), "--endpoints", c.Endpoint(0), "-o", out, "-w", "json")
				})
				must(t, os.Remove(out))
				m.collect = cost.cpu
				m.least = time.Duration(bytesRead(t, cost.out, ends)) * time.Second / time.Duration(rate<<20)
				if m.during.wall < m.least*9/10 {
					t.Errorf("at %d MiB a second the copy takes %v at least, it took %v", rate, m.least, m.during.wall)
				}
				after := observe(c, written, func() { time.Sleep(2 * time.Second) })
				m.around, before = before.add(after), after
				t.Logf("%.0f writes/s without, %.0f with; %.2f s of collect, %.2f s of sending in %.1f s: %.1f %% lost",
					m.around.perSecond(), m.during.perSecond(), m.collect.Seconds(), m.sending().Seconds(),
					m.least.Seconds(), 100*m.share())
				copies = append(copies, m)
			}
			wantLittleLost(t, copies)
			wantLittleTaken(t, copies)
		})
	}
}

// costRun is a collection, with what happened around it.
type costRun struct {
	during, around window
	collect        time.Duration
	// least is how long the copy takes at least: what it reads, at the rate.
	least time.Duration
}

// sending is the processor time that the server takes to send its snapshot, however many writes come meanwhile.
func (m *costRun) sending() time.Duration {
	writes := time.Duration(float64(m.during.writes) * m.around.perWrite() * float64(time.Second))
	return max(0, m.during.cpu-writes)
}

// share is the part of the processors' time that the collection takes of the server.
func (m *costRun) share() float64 {
	return float64(m.collect+m.sending()) / float64(costProcessors*m.least)
}

// wantLittleTaken judges the processor time. Other work on the machine only adds to it, by what it takes of caches and
// of the processor's own parts, so the second lowest decides.
func wantLittleTaken(t *testing.T, copies []costRun) {
	t.Helper()
	var shares []float64
	for i := range copies {
		shares = append(shares, copies[i].share())
	}
	slices.Sort(shares)
	t.Logf("processor time lost: %.1f %%", 100*shares[1])
	if shares[1] > costLost {
		t.Errorf("collect takes %.0f %% of the processor time for writes, %.0f %% may be", 100*shares[1], 100*costLost)
	}
}

// logEnds is where the segments of a log end, without the zeros after that.
func logEnds(t *testing.T, dataDir string) map[string]int64 {
	t.Helper()
	l, err := dumplog.Open(filepath.Join(dataDir, "member", "wal"))
	must(t, err)
	s, err := l.Scan(t.Context())
	must(t, err)
	ends := map[string]int64{}
	for i := range s.Segments {
		ends[s.Segments[i].Name] = s.Segments[i].DataEnd
	}
	return ends
}

// bytesRead is how much a collection read at least: the database, and of the log what was there before.
func bytesRead(t *testing.T, manifest string, ends map[string]int64) (n int64) {
	t.Helper()
	var m collect.Manifest
	must(t, json.Unmarshal([]byte(manifest), &m))
	for _, f := range m.Files {
		n += min(ends[filepath.Base(f.Name)], f.Size)
		if filepath.Base(f.Name) == "db" {
			n += f.Size
		}
	}
	if n < 2*costSmall {
		t.Fatalf("%d bytes read: neither database nor log are smaller than %d", n, costSmall)
	}
	return n
}

// wantLittleLost judges the writes that were not acknowledged.
func wantLittleLost(t *testing.T, copies []costRun) {
	t.Helper()
	var lost []float64
	for i := range copies {
		if m := &copies[i]; m.around.perSecond() > 0 {
			lost = append(lost, 1-m.during.perSecond()/m.around.perSecond())
		}
	}
	if len(lost) < costPairs/2 {
		t.Fatalf("the server acknowledged writes in %d of %d windows", len(lost), costPairs)
	}
	slices.Sort(lost)
	median, most := lost[len(lost)/2], costLostBusy
	if os.Getenv("COLLECT_COST_STRICT") != "" {
		most = costLost
	}
	t.Logf("throughput lost: %.1f %% in the median", 100*median)
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

// window is what a server did in some time.
type window struct {
	writes    int64
	wall, cpu time.Duration
}

// observe sees what the servers do while f runs.
func observe(c *clustertest.Cluster, written *atomic.Int64, f func()) window {
	begun, from, cpu := time.Now(), written.Load(), c.CPU()
	f()
	return window{writes: written.Load() - from, wall: time.Since(begun), cpu: c.CPU() - cpu}
}

func (w window) add(o window) window {
	return window{w.writes + o.writes, w.wall + o.wall, w.cpu + o.cpu}
}

func (w window) perSecond() float64 { return float64(w.writes) / w.wall.Seconds() }

// perWrite is the server's processor time for a write, in seconds.
func (w window) perWrite() float64 { return w.cpu.Seconds() / float64(max(w.writes, 1)) }

// costs are what one process took.
type costs struct {
	cpu  time.Duration
	anon int64
	out  string
}

// collectCost runs the built program and watches its anonymous memory.
func collectCost(t *testing.T, args ...string) (c costs) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built(t), args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	must(t, cmd.Start())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { c.anon = highestAnon(cmd.Process.Pid, stop) })
	err := cmd.Wait()
	close(stop)
	wg.Wait()
	c.out = out.String()
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
