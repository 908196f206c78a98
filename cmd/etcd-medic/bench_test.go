//go:build bench

package main_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// The measurements run whole processes: this program, its peer and the floor take turns on the same files with a warm
// cache, and medians are reported. `make bench` builds program and peers, and writes docs/BENCHMARKS.md.
var (
	benchPeers  = flag.String("peers", "", "the folder of the tools to compare with")
	benchMedic  = flag.String("medic", "", "the program")
	benchOut    = flag.String("out", "", "the document to write; the plot stands next to it")
	benchRounds = flag.Int("rounds", 5, "how often each process runs")
	benchScale  = flag.Int("scale", 100, "the size of the data in percent")
	benchLarge  = flag.Bool("large", false, "also 8 GB with 20,000,000 revisions and a log of 4 GB")
)

// usage is what one process took.
type usage struct {
	took time.Duration
	// cpu is what all its threads took together: on a busy machine the better measure of the two.
	cpu time.Duration
	// anon is the highest anonymous memory seen while it ran, in bytes.
	anon int64
}

// process is a command line to measure.
type process struct {
	bin  string
	args []string
	// findings is true for a program whose exit codes above 2 are results.
	findings bool
	// writes is a file that is removed before each run.
	writes string
}

func (p process) run(t *testing.T) usage {
	t.Helper()
	if p.writes != "" {
		_ = os.Remove(p.writes)
	}
	cmd := exec.CommandContext(t.Context(), p.bin, p.args...)
	var u usage
	// Output goes to the null device: a reader here would slow whoever writes in small pieces.
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { u.anon = watchAnon(cmd.Process.Pid, stop) })
	err := cmd.Wait()
	u.took = time.Since(begin)
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	close(stop)
	wg.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 2 && p.findings {
		err = nil
	}
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(p.bin), p.args, err, stderr.String())
	}
	return u
}

// watchAnon samples RssAnon: mapped file pages, which the kernel may drop at will, do not count.
func watchAnon(pid int, stop <-chan struct{}) (highest int64) {
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return highest
		case <-t.C:
			status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
			_, rest, ok := strings.Cut(string(status), "RssAnon:")
			if !ok {
				continue
			}
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			highest = max(highest, kb<<10)
		}
	}
}

// measured are the runs of one process.
type measured []usage

func (m measured) took() time.Duration {
	return median(m, func(u usage) time.Duration { return u.took })
}

func (m measured) cpu() time.Duration {
	return median(m, func(u usage) time.Duration { return u.cpu })
}

func (m measured) anon() (highest int64) {
	for _, u := range m {
		highest = max(highest, u.anon)
	}
	return highest
}

func median[T any, V cmp.Ordered](runs []T, of func(T) V) V {
	var all []V
	for _, r := range runs {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// ratio is the median of how many times longer the runs of a took than those of b in the same round.
func ratio(a, b measured) float64 {
	all := make([]float64, min(len(a), len(b)))
	for i := range all {
		all[i] = a[i].took.Seconds() / b[i].took.Seconds()
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// rounds lets the processes take turns, after one round that warms the cache and is not counted.
func rounds(t *testing.T, ps ...process) []measured {
	t.Helper()
	out := make([]measured, len(ps))
	for round := range *benchRounds + 1 {
		for i, p := range ps {
			if u := p.run(t); round > 0 {
				out[i] = append(out[i], u)
			}
		}
	}
	return out
}

// scaled is a synthetic cluster in the size that was asked for.
func scaled(s clustertest.Synth) clustertest.Synth {
	s.Entries, s.Keys = s.Entries**benchScale/100, max(s.Keys**benchScale/100, 1)
	s.Purged = s.Purged * *benchScale / 100
	return s
}

// bytesOf adds up the files below the paths.
func bytesOf(t *testing.T, paths ...string) (n int64) {
	t.Helper()
	for _, f := range filesOf(t, paths...) {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		n += st.Size()
	}
	return n
}

// filesOf lists the files below the paths.
func filesOf(t *testing.T, paths ...string) (files []string) {
	t.Helper()
	for _, p := range paths {
		err := filepath.WalkDir(p, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}
