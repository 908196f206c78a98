package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// The benchmarks run whole processes, this program and its peer one after the other on the same files with a warm
// cache, and report how many times faster this one is. `make bench` builds the peers and names their folder in
// ETCD_MEDIC_PEERS.

// logSize and dbSize are the sizes the figures in the documents are for: 500,000 entries in 0.55 GB of segments;
// 1,000,000 revisions of 200,000 keys in 1.4 GB.
var (
	logSize = clustertest.Synth{Members: 1, Entries: 500_000, Keys: 100_000, Value: 1000}
	dbSize  = clustertest.Synth{Members: 1, Entries: 1_000_000, Keys: 200_000, Value: 1100}
	// setSize is three members of that db, whose logs hold the last half of the entries.
	setSize = clustertest.Synth{Members: 3, Entries: 1_000_000, Keys: 200_000, Value: 1100, Purged: 490_000}
)

var benchBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "etcd-medic-bench-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "etcd-medic")
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	if err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return bin, nil
})

func program(b *testing.B) string {
	b.Helper()
	bin, err := benchBinary()
	if err != nil {
		b.Fatal(err)
	}
	return bin
}

func peer(b *testing.B, name string) string {
	b.Helper()
	dir := os.Getenv("ETCD_MEDIC_PEERS")
	if dir == "" {
		b.Fatal("ETCD_MEDIC_PEERS is not set; run `make bench`, which builds the peers")
	}
	return filepath.Join(dir, name)
}

// usage is what one process took.
type usage struct {
	took time.Duration
	// cpu is what all its threads took together: on a busy machine the better measure of the two.
	cpu time.Duration
	// anon is the highest anonymous memory seen while it ran, in bytes.
	anon int64
}

// run runs a process to its end, its output thrown away. Exit codes of this program above 1 are findings, not failures.
func run(b *testing.B, bin string, args ...string) usage {
	b.Helper()
	cmd := exec.CommandContext(context.Background(), bin, args...)
	var u usage
	// Output goes to the null device: a reader here would slow whoever writes in small pieces.
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
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
	if errors.As(err, &exit) && exit.ExitCode() > 1 && bin == program(b) {
		err = nil
	}
	if err != nil {
		b.Fatalf("%s %v: %v\n%s", filepath.Base(bin), args, err, stderr.String())
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

// against measures both, the peer once and this program in every loop, best of the loops.
func against(b *testing.B, peerBin string, peerArgs, args []string) {
	b.Helper()
	bin := program(b)
	theirs := run(b, peerBin, peerArgs...)
	var best usage
	for b.Loop() {
		u := run(b, bin, args...)
		if best.took == 0 || u.took < best.took {
			best.took, best.cpu = u.took, u.cpu
		}
		best.anon = max(best.anon, u.anon)
	}
	b.ReportMetric(theirs.took.Seconds(), "peer-s")
	b.ReportMetric(best.took.Seconds(), "own-s")
	b.ReportMetric(theirs.cpu.Seconds(), "peer-cpu-s")
	b.ReportMetric(best.cpu.Seconds(), "own-cpu-s")
	b.ReportMetric(theirs.took.Seconds()/best.took.Seconds(), "times-faster")
	b.ReportMetric(float64(best.anon)/1e6, "own-anon-MB")
	b.ReportMetric(float64(theirs.anon)/1e6, "peer-anon-MB")
}

// BenchmarkLog compares with etcd-dump-logs over one log of 500,000 entries.
func BenchmarkLog(b *testing.B) {
	node := filepath.Join(b.TempDir(), "node1")
	if err := os.MkdirAll(filepath.Join(node, "member", "snap"), 0o700); err != nil {
		b.Fatal(err)
	}
	logSize.WriteWAL(b, filepath.Join(node, "member", "wal"), 0)
	theirs := []string{"--start-index=1", node}
	b.Run("stats", func(b *testing.B) {
		against(b, peer(b, "etcd-dump-logs"), theirs, []string{"dumplog", "--stats", node})
	})
	b.Run("jsonl", func(b *testing.B) {
		against(b, peer(b, "etcd-dump-logs"), theirs, []string{"dumplog", "-w", "jsonl", node})
	})
}

// BenchmarkDB compares with etcdutl and etcd-dump-db over one database of 1,000,000 revisions. The peers open it
// read-write, so they get a copy of their own.
func BenchmarkDB(b *testing.B) {
	db := filepath.Join(b.TempDir(), "db")
	dbSize.WriteDB(b, db)
	theirs := filepath.Join(b.TempDir(), "peers.db")
	if out, err := exec.Command("cp", db, theirs).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.Run("hashkv", func(b *testing.B) {
		against(b, peer(b, "etcdutl-3.6"), []string{"hashkv", theirs}, []string{"dumpdb", db, "--hashkv"})
		sameHash(b, theirs, db)
	})
	b.Run("inspect", func(b *testing.B) {
		against(b, peer(b, "etcdutl-3.6"), []string{"snapshot", "status", theirs}, []string{"inspect", db})
	})
	b.Run("jsonl", func(b *testing.B) {
		against(b, peer(b, "etcd-dump-db"), []string{"iterate-bucket", theirs, "key", "--decode"},
			[]string{"dumpdb", db, "key", "--values", "-w", "jsonl"})
	})
}

// BenchmarkDiagnose compares a whole diagnosis of three members, logs and databases, with the time that etcdutl hashkv
// needs for their databases alone, one after the other: of members that are equal, and with one that lacks a write, so
// that all of its later revisions differ. The table is what a person gets; JSON has the sha256 of all inputs besides,
// which is nearly half of its work. On a busy machine compare the CPU seconds: the peer keeps little more than one core
// busy, a diagnosis all of them.
func BenchmarkDiagnose(b *testing.B) {
	equal := setSize.Write(b, b.TempDir())
	lacking := setSize
	lacking.Skip = map[int]map[int]bool{1: {700_000: true}}
	apart := []string{equal[0], lacking.WriteMember(b, b.TempDir(), 1), equal[2]}
	for _, set := range []struct {
		name string
		dirs []string
	}{{"equal", equal}, {"apart", apart}} {
		var hashAll string
		for _, dir := range set.dirs {
			theirs := filepath.Join(b.TempDir(), "db")
			if out, err := exec.Command("cp", filepath.Join(dir, "member", "snap", "db"),
				theirs).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			hashAll += peer(b, "etcdutl-3.6") + " hashkv " + theirs + " && "
		}
		for _, format := range []string{"table", "json"} {
			b.Run(set.name+"/"+format, func(b *testing.B) {
				against(b, "/bin/sh", []string{"-c", hashAll + "true"},
					append([]string{"diagnose", "-w", format}, set.dirs...))
			})
		}
	}
}

// sameHash holds both hashes against each other: a fast wrong answer is none.
func sameHash(b *testing.B, theirDB, db string) {
	b.Helper()
	theirs, err := exec.Command(peer(b, "etcdutl-3.6"), "hashkv", theirDB, "-w", "json").Output()
	if err != nil {
		b.Fatal(err)
	}
	ours, err := exec.Command(program(b), "dumpdb", db, "--hashkv", "-w", "jsonl").Output()
	if err != nil {
		b.Fatal(err)
	}
	var t, o struct {
		Hash uint32 `json:"hash"`
	}
	if err := json.Unmarshal(theirs, &t); err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(ours, &o); err != nil {
		b.Fatal(err)
	}
	if t.Hash != o.Hash || t.Hash == 0 {
		b.Fatalf("hash %d, etcdutl says %d", o.Hash, t.Hash)
	}
}
