package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
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
	watchCollections()
	for range 600 {
		runtime.GC()
		if debug.SetMemoryLimit(-1) == easyHeap {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if got := debug.SetMemoryLimit(-1); got != easyHeap {
		t.Errorf("after a collection: %d, want %d", got, easyHeap)
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
