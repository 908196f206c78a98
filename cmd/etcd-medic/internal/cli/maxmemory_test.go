package cli

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/memory"
)

// TestMaxMemoryFlag: sizes as people write them; what is no size, or too little to start with, is wrong usage.
func TestMaxMemoryFlag(t *testing.T) {
	for text, want := range map[string]int64{"2GiB": 2 << 30, "2Gi": 2 << 30, "2g": 2e9, "500 MB": 5e8,
		"1073741824": 1 << 30, "128MiB": memory.Least, "1.5GiB": 3 << 29} {
		var n int64
		if err := (&sizeFlag{&n, memory.Least}).Set(text); err != nil || n != want {
			t.Errorf("%s: %d, %v; want %d", text, n, err, want)
		}
	}
	for text, says := range map[string]string{"": "like 2GiB", "much": "like 2GiB", "-1": "like 2GiB", "127MiB": "less than",
		"2": "less than", "16EiB": "like 2GiB", "9EiB": "more than"} {
		var n int64
		if err := (&sizeFlag{&n, memory.Least}).Set(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	var out bytes.Buffer
	s := &Streams{Out: &out, Err: &out, Getenv: os.Getenv}
	if code := Main(t.Context(), []string{"version", "--max-memory", "1MiB"}, s); code != ExitUsage {
		t.Errorf("exit code %d: %s", code, &out)
	}
}

// TestOwnLimit: without the flag a run may take a part of what there is.
func TestOwnLimit(t *testing.T) {
	if n := ownLimit(); n < memory.Least || n > 1<<50 {
		t.Errorf("%d bytes", n)
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for set, want := range map[int64]int64{1 << 20: memory.Least, 1 << 30: 1 << 30} {
		t.Setenv("GOMEMLIMIT", "set")
		debug.SetMemoryLimit(set)
		if n := ownLimit(); n != want {
			t.Errorf("with GOMEMLIMIT of %d: %d bytes, want %d", set, n, want)
		}
	}
}

// TestRunThatNeedsMoreMemory: a command ends, in order, when a collection finds more live than it may take.
func TestRunThatNeedsMoreMemory(t *testing.T) {
	b := newMemoryBound()
	b.watch(math.MaxInt64 / 2) // without a limit nothing ends
	b.bound(1 << 30)
	b.watch(1 << 29)
	select {
	case <-b.over:
		t.Fatal("half of the limit is too much")
	default:
	}
	s := &Streams{memory: b}
	s.orderly.Store(true)
	ctx, stop := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		time.Sleep(time.Millisecond) // cleans up
		done <- ctx.Err()
	}()
	b.watch(1 << 30)
	b.watch(1 << 31)
	if err := s.await(ctx, stop, done); !errors.Is(err, context.Canceled) {
		t.Errorf("the command ended with %v", err)
	}
	err := context.Cause(ctx)
	if code := exitCode(err); code != ExitError || hintOf(err) != memoryHint ||
		err.Error() != "stopped: 1.0 GiB of memory are in use, of 1.0 GiB that the run may take" {
		t.Errorf("exit code %d, hint %q: %v", code, hintOf(err), err)
	}
}
