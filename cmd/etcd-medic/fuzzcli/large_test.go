package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// withSnapFiles is a member with n empty files in its snap folder.
func withSnapFiles(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1"))
	for i := range n {
		name := filepath.Join(dir, "member", "snap", fmt.Sprintf("%016x-%016x.snap", i, i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestManySnapFiles wants bounded memory and output for a snap folder of 40,000 files, none of them a snapshot.
func TestManySnapFiles(t *testing.T) {
	dir := withSnapFiles(t, 40_000)
	for _, args := range [][]string{{"diagnose", dir}, {"inspect", dir, "-w", "json"}, {"dumplog", dir, "--snaps"}} {
		o := program(t, args...)
		if o.memory > 512<<20 || o.code == 0 {
			t.Errorf("%v: code %d, %d MB of memory", args[0], o.code, o.memory>>20)
		}
	}
}

// TestHugeSparseFiles wants a member that claims gigabytes, all of them zeros, to be read in bounded memory.
func TestHugeSparseFiles(t *testing.T) {
	for _, file := range []string{"snap/db", "snap/00000000000000ff-00000000000000ff.snap",
		"wal/00000000000000ff-00000000000000ff.wal"} {
		dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1"))
		f, err := os.OpenFile(filepath.Join(dir, "member", filepath.FromSlash(file)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(1 << 30); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if o := program(t, "diagnose", dir); o.memory > 1<<30 {
			t.Errorf("%s: %d MB of memory", file, o.memory>>20)
		}
	}
}

// TestExplainsOneLongLine gives explain a line of 200 MB, which is one line, and one of 20 MB: the time is in
// proportion.
func TestExplainsOneLongLine(t *testing.T) {
	small, large := explained(t, 20_000_000), explained(t, 200_000_000)
	if !linear(small, large, 10) {
		t.Errorf("20 MB take %s of work, 200 MB %s", small.worked, large.worked)
	}
}

// explained gives explain one line.
func explained(t *testing.T, length int64) *outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "explain", "-")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdin = io.LimitReader(endless{}, length)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watched := peak(cmd.Process.Pid)
	err = cmd.Wait()
	if err == nil || !strings.Contains(out.String(), "the one line on stdin holds no message") {
		t.Errorf("%v: %.300s", err, out.String())
	}
	if b := watched(); b == 0 || b > 512<<20 {
		t.Errorf("%d MB of memory", b>>20)
	}
	return &outcome{worked: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

// endless is a line without an end.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestManyRows: rows of small buckets, and buckets, cost time in proportion to their number, and what is found in them
// is grouped.
func TestManyRows(t *testing.T) {
	for _, name := range []string{"database of alarms", "database of members", "database of buckets",
		"log of falling terms", "log of puts by many processes"} {
		i := slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })
		if i < 0 {
			t.Fatalf("no shape %s", name)
		}
		t.Run(name, func(t *testing.T) {
			diagnosed := func(size int64) *outcome {
				dir := t.TempDir()
				shapes[i].write(t, dir, size)
				command := []string{"diagnose", dir, "-w", "json"}
				if strings.HasPrefix(name, "log of puts") {
					command = []string{"dumplog", dir, "--lives"}
				}
				return program(t, command...)
			}
			small, large := diagnosed(500_000), diagnosed(4_000_000)
			if !linear(small, large, 8) {
				t.Errorf("500 kB take %s of work, 4 MB %s", small.worked, large.worked)
			}
			if n := bytes.Count(large.stdout, []byte(`"check"`)); n > 300 {
				t.Errorf("%d findings and checks", n)
			}
		})
	}
}
