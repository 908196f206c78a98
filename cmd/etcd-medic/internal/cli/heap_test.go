package cli

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
	"weak"
)

// TestHeapLimitFollowsTheHeap: the limit is what is easy to have, more with more live in the heap, and left alone while
// a command has its own.
func TestHeapLimitFollowsTheHeap(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetGCPercent(percent)
		spareHeap(true, limit) // the watch continues
	}()
	setHeapLimit(0)
	if got := debug.SetMemoryLimit(-1); got != easyHeap {
		t.Errorf("%d, want %d", got, easyHeap)
	}
	setHeapLimit(4 << 30)
	if got := debug.SetMemoryLimit(-1); got != 5<<30 {
		t.Errorf("%d, want %d", got, int64(5<<30))
	}
	setHeapLimit(math.MaxUint64 / 2)
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("%d, want %d", got, int64(math.MaxInt64))
	}
	watchCollections(followHeap)
	follows := func() bool { // what other tests have in the heap counts, too
		got := debug.SetMemoryLimit(-1)
		return got >= easyHeap && got < 1<<40
	}
	for range 600 {
		if runtime.GC(); follows() {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !follows() {
		t.Errorf("after a collection: %d", debug.SetMemoryLimit(-1))
	}
	undo := spare()
	defer undo()
	for range 3 {
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	if got := debug.SetMemoryLimit(-1); got != heapLimit {
		t.Errorf("in a command with its own limit: %d, want %d", got, heapLimit)
	}
}

// TestCommandsAreForgotten: nothing keeps the commands of a run that has ended, so that a process can run many.
func TestCommandsAreForgotten(t *testing.T) {
	root := newRoot(&Streams{Out: io.Discard, Err: io.Discard, Getenv: os.Getenv})
	diagnose, _, err := root.Find([]string{"diagnose"})
	want(t, err)
	flag := weak.Make(diagnose.Flags().Lookup("fail-on"))
	runtime.KeepAlive(root)
	root, diagnose = nil, nil
	for range 100 {
		if runtime.GC(); flag.Value() == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the flags of the commands are still in the heap")
}

// TestSpareTwice: commands that run at once limit the process together, and none of them leaves it limited.
func TestSpareTwice(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	first := spare()
	second := spare()
	first()
	if n, l := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1); n != 1 || l != heapLimit {
		t.Errorf("after the first of two: %d processors, %d bytes", n, l)
	}
	second()
	if n, l := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1); n != procs || l == heapLimit {
		t.Errorf("after both: %d processors, %d bytes; had %d", n, l, procs)
	}
}

// TestSmallInput: files and folders count together, a link inside of a folder as large, what is missing not at all.
func TestSmallInput(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		return path
	}
	half := write("a/half", smallInput/2)
	other, most := write("other", smallInput/2), write("most", smallInput/2+1)
	linked := filepath.Join(dir, "linked", "wal")
	if err := os.Mkdir(filepath.Dir(linked), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "a"), linked); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true}, {[]string{"diagnose", "n=" + half, "-w", "json", filepath.Join(dir, "none")}, true},
		{[]string{filepath.Join(dir, "a"), other}, true}, {[]string{filepath.Join(dir, "a"), "b=" + most}, false},
		{[]string{filepath.Join(dir, "linked")}, false}, {[]string{dir}, false},
	} {
		if got := isSmallInput(c.args); got != c.want {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}
