package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// asProgram makes the test binary be the program, so that its memory and its answer to signals are those of a process.
// If its value is an absolute path, the program makes that file once it takes signals.
const asProgram = "ETCD_MEDIC_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		evidencetest.Main(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if started := os.Getenv(asProgram); filepath.IsAbs(started) {
		if err := os.WriteFile(started, nil, 0o600); err != nil {
			panic(err)
		}
	}
	code := cli.Main(ctx, os.Args[1:], cli.System())
	stop()
	os.Exit(code)
}

// logWriter writes the records of a WAL.
type logWriter struct {
	b     []byte
	chain uint32
}

func (w *logWriter) add(typ uint64, data []byte) {
	if typ != crcType {
		w.chain = crc32.Update(w.chain, castagnoli, data)
	}
	w.b = appendRecord(w.b, typ, w.chain, data)
}

func fields(values ...uint64) (b []byte) {
	for i, v := range values {
		b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(i+1), protowire.VarintType), v)
	}
	return b
}

// entry adds an entry of a type (0 normal, 1 conf change).
func (w *logWriter) entry(typ, index uint64, data []byte) {
	w.add(2, protowire.AppendBytes(protowire.AppendTag(fields(typ, 1, index), 4, protowire.BytesType), data))
}

// memberWithLog makes a data dir with a log of n entries.
func memberWithLog(t *testing.T, n int, entry func(w *logWriter, index uint64)) (dir, segment string) {
	t.Helper()
	dir = t.TempDir()
	w := &logWriter{}
	w.add(crcType, nil)
	w.add(1, fields(7, 9)) // metadata
	w.add(5, fields(0, 0)) // snapshot at 0
	for i := 1; i <= n; i++ {
		entry(w, uint64(i))
	}
	w.add(3, fields(1, 7, uint64(n))) // HardState: term, vote, commit
	segment = filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal")
	for _, d := range []string{filepath.Dir(segment), filepath.Join(dir, "member", "snap")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(segment, w.b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, segment
}

// putEntry is a put of a small value.
func putEntry(w *logWriter, index uint64) {
	key := fmt.Appendf(nil, "key-%d", index)
	put := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), key)
	put = protowire.AppendBytes(protowire.AppendTag(put, 2, protowire.BytesType), key)
	req := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), index)
	w.entry(0, index, protowire.AppendBytes(protowire.AppendTag(req, 4, protowire.BytesType), put))
}

// busy is how long a test waits for the program: the machine may be busy with other things.
const busy = 10 * time.Minute

// program runs the program and returns what it did.
func program(t *testing.T, args ...string) *outcome {
	t.Helper()
	return programIn(t, t.TempDir(), args...)
}

// programIn is program with a folder for temporary files.
func programIn(t *testing.T, tmp string, args ...string) *outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asProgram, "1")
	o, err := run(t.Context(), self, tmp, args, busy)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v: code %d in %s (%s of work), %d MB, %d bytes of output", args[0], o.code,
		o.took.Round(time.Millisecond), o.worked.Round(time.Millisecond), o.memory>>20, len(o.stdout))
	if o.hung || o.signaled || o.code < 0 || o.code > 6 || bytes.Contains(o.stderr, []byte("goroutine ")) {
		t.Fatalf("%v: code %d, hung %v, stderr %.2000s", args, o.code, o.hung, o.stderr)
	}
	return o
}

// TestManyDamagedRecords: 30,000 damaged records are one finding.
func TestManyDamagedRecords(t *testing.T) {
	dir, segment := memberWithLog(t, 60_000, putEntry)
	b, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records(b) {
		if r.typ == 2 && i%2 == 0 {
			b[r.end-8] ^= 0x10 // inside of the data
		}
	}
	if err := os.WriteFile(segment, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"diagnose"}, {"diagnose", "-w", "json"}, {"dumplog", "--stats"},
		{"dumplog", "--stats", "-w", "json"}} {
		o := program(t, append(args, dir)...)
		if len(o.stdout) > 1<<20 || o.code != 3 {
			t.Errorf("%v: %d bytes of output, code %d", args, len(o.stdout), o.code)
		}
		if o.memory > 1<<30 {
			t.Errorf("%v: %d MB of memory for %d MB", args, o.memory>>20, len(b)>>20)
		}
		if !strings.Contains(string(o.stdout), "places") {
			t.Errorf("%v: nothing tells of many places:\n%.1500s", args, o.stdout)
		}
	}
}

// linear tells whether the work of the program grew no more than in proportion from one size to another: three times as
// much is allowed, and what any start takes. Time spent waiting for other processes of the machine does not count.
func linear(small, large *outcome, times int) bool {
	return large.worked <= time.Duration(3*times)*small.worked+2*time.Second
}

// confChanges are kinds of membership changes, about few members or each about another. A context as servers write it
// makes a member of the cluster's list, without one it is a voter of raft only.
var confChanges = map[string]func(index uint64) []byte{
	// 50, added and removed in turn
	"few members":        func(i uint64) []byte { return fields(i, i/50%2, 1000+i%50) },
	"each another voter": func(i uint64) []byte { return fields(i, 0, 1000+i) },
	"each another member": func(i uint64) []byte {
		return protowire.AppendString(protowire.AppendTag(fields(i, 0, 1000+i), 4, protowire.BytesType),
			fmt.Sprintf(`{"id":%d,"peerURLs":["http://127.0.0.1:%d"],"name":"n%d"}`, 1000+i, i, i))
	},
	"each another learner": func(i uint64) []byte {
		return protowire.AppendString(protowire.AppendTag(fields(i, 3, 1000+i), 4, protowire.BytesType),
			fmt.Sprintf(`{"id":%d,"peerURLs":["http://127.0.0.1:%d"],"isLearner":true}`, 1000+i, i))
	},
}

// TestManyConfChanges: 80,000 membership changes take time in proportion, whatever they are about. The report lists the
// voters, and else does not grow.
func TestManyConfChanges(t *testing.T) { manyConfChanges(t, 10_000, 80_000) }

// manyConfChanges diagnoses logs with two numbers of membership changes of each kind.
func manyConfChanges(t *testing.T, few, many int) {
	t.Helper()
	for name, change := range confChanges {
		t.Run(name, func(t *testing.T) {
			diagnosed := func(n int) *outcome {
				dir, _ := memberWithLog(t, n, func(w *logWriter, index uint64) { w.entry(1, index, change(index)) })
				o := program(t, "diagnose", dir, "-w", "json")
				if o.memory > 1<<30 || len(o.stdout) > 8<<20+30*n {
					t.Errorf("%d changes: %d MB of memory, %d bytes of output", n, o.memory>>20, len(o.stdout))
				}
				return o
			}
			if small, large := diagnosed(few), diagnosed(many); !linear(small, large, many/few) {
				t.Errorf("%d changes take %s, %d take %s", few, small.worked, many, large.worked)
			}
		})
	}
}
