package main

import (
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestMend: a log whose records are written again is the same log, and a changed record passes the readers' CRC check.
func TestMend(t *testing.T) {
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1"))
	wal := filepath.Join(dir, "member", "wal")
	before, err := os.ReadFile(segments(wal)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := mendLog(wal); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(segments(wal)[0])
	if err != nil || !bytes.Equal(before, after) {
		t.Fatalf("a sound log changed: %v", err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	if err := mendedRecord(r, &set{members: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	l, err := dumplog.Open(wal)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := l.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range sum.Damage {
		if d.Kind == dumplog.DamageCRC || d.Kind == dumplog.DamageChain {
			t.Errorf("the CRC of a mended log does not hold: %v", d)
		}
	}
}

// TestMutationsChange: every mutation changes the set, its names or how it is given.
func TestMutationsChange(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			for try := range uint64(20) {
				dir := evidencetest.Copy(t, evidencetest.Incident(t, "gen-healthy-late-snapshot"))
				members, err := filepath.Glob(filepath.Join(dir, "*"))
				if err != nil {
					t.Fatal(err)
				}
				s := &set{dir: dir, members: members}
				before := digest(t, dir)
				if err := m.do(rand.New(rand.NewPCG(3, try)), s); err != nil {
					continue // there is nothing to mutate at that place
				}
				if s.archive != "" || s.names != nil || digest(t, dir) != before {
					return
				}
			}
			t.Error("20 tries changed nothing")
		})
	}
}

// digest is over names and content of all that can be read without waiting.
func digest(t *testing.T, dir string) uint32 {
	t.Helper()
	names, err := state(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := crc32.NewIEEE()
	_, _ = io.WriteString(h, names)
	for _, p := range (&set{members: []string{dir}}).files(isAny) {
		b, err := head(p)
		if err != nil && !strings.Contains(err.Error(), "EOF") {
			t.Fatal(err)
		}
		_, _ = h.Write(b)
	}
	return h.Sum32()
}

// TestJudge: each thing that must never happen is seen.
func TestJudge(t *testing.T) {
	sound := func() *outcome {
		return &outcome{args: []string{"diagnose", "x", "-w", "json"}, stdout: []byte("{\"a\": 1}\n")}
	}
	if wrong := sound().judge(); len(wrong) > 0 {
		t.Errorf("a sound outcome: %v", wrong)
	}
	for name, spoil := range map[string]func(*outcome){
		"does not end": func(o *outcome) { o.hung = true },
		"signal":       func(o *outcome) { o.signaled, o.code = true, -1 },
		"exit code 7":  func(o *outcome) { o.code = 7 },
		"panic":        func(o *outcome) { o.stderr = []byte("goroutine 1 [running]:\n") },
		"memory":       func(o *outcome) { o.memory = 1 << 40 },
		"broken JSON":  func(o *outcome) { o.stdout = []byte("{\"a\": ") },
		"U+001B":       func(o *outcome) { o.stderr = []byte("\x1b[31m") },
		"U+202E":       func(o *outcome) { o.stdout = []byte("{\"a\": \"\u202e\"}") },
		"U+009B":       func(o *outcome) { o.stderr = []byte("\u009b") },
	} {
		o := sound()
		spoil(o)
		if wrong := o.judge(); len(wrong) == 0 || !strings.Contains(strings.Join(wrong, "\n"), name) {
			t.Errorf("%s: found %v", name, wrong)
		}
	}
}

// TestMemoryIsTheProgramsOwn: what the parent uses does not count, what the program uses does.
func TestMemoryIsTheProgramsOwn(t *testing.T) {
	ballast := bytes.Repeat([]byte("x"), 400<<20)
	if o := program(t, "version"); o.memory == 0 || o.memory > 200<<20 {
		t.Errorf("%d MB with %d MB of the parent", o.memory>>20, len(ballast)>>20)
	}
	runtime.KeepAlive(ballast)
	dir, _ := memberWithLog(t, 100_000, putEntry)
	if o := program(t, "inspect", dir); o.memory < 30<<20 {
		t.Errorf("%d MB for a log of 100,000 entries", o.memory>>20)
	}
}

// TestCommandsAreRight: no command of the list is refused as wrong usage, which would test nothing.
func TestCommandsAreRight(t *testing.T) {
	members, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "*"))
	if err != nil || len(members) == 0 {
		t.Fatalf("%d members: %v", len(members), err)
	}
	s := &set{members: members}
	for _, c := range commands {
		if o := program(t, s.args(rand.New(rand.NewPCG(1, 1)), c,
			filepath.Join(t.TempDir(), "out"))...); o.code == cli.ExitUsage || o.code == cli.ExitError {
			t.Errorf("%s: exit code %d: %s", c, o.code, o.stderr)
		}
	}
}

// TestHealthyIsJudged: a set is wrongly called healthy only where the source that was changed was given.
func TestHealthyIsJudged(t *testing.T) {
	s := &set{members: []string{"/a", "/b"}, names: map[string]string{"/b": "x"}}
	if !s.allIn([]string{"diagnose", "/a", "x=/b"}) || s.allIn([]string{"diagnose", "/a"}) ||
		s.allIn([]string{"diagnose", "/a", "/b"}) {
		t.Error("sources are counted wrong")
	}
	if s.archive = "/c.tar.gz"; !s.allIn([]string{"diagnose", "/c.tar.gz"}) ||
		s.allIn([]string{"diagnose", "/a", "x=/b"}) {
		t.Error("an archive stands for all sources")
	}
	for text, want := range map[string]bool{`{"verdict":{"healthy":true}}`: true,
		`{"verdict":{"healthy":false}}`: false, `{"verdict":{"healthy":null}}`: false, ``: false} {
		if (&outcome{stdout: []byte(text)}).healthy() != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
