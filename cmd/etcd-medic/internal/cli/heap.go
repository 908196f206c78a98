package cli

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// sparePercent is how much the heap grows between collections: little of the data read stays in memory, and
	// collecting seldom saves a tenth of the time, for about 100 MB.
	sparePercent = 300
	// easyHeap is up to what size that is done. A larger heap grows only by a part of what is live in it.
	easyHeap = 448 << 20
	// tightPart is that part.
	tightPart = 4
)

// heapSpared is true while a command has its own limit.
var (
	heapMu     sync.Mutex
	heapSpared bool
)

// boundHeap makes the collector spare time while the heap is small, and memory when it is large. What the user set in
// the environment is left alone.
func boundHeap() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(sparePercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		setHeapLimit(0)
		watchCollections()
	}
}

// setHeapLimit sets the size above which the collector works more, with so much live in the heap. A limit near to what
// is live would have it work all the time.
func setHeapLimit(live uint64) {
	debug.SetMemoryLimit(int64(min(max(easyHeap, live+live/tightPart), math.MaxInt64)))
}

// spareHeap gives a command its own limit, or ends that.
func spareHeap(on bool, limit int64) (before int64) {
	heapMu.Lock()
	defer heapMu.Unlock()
	heapSpared = on
	return debug.SetMemoryLimit(limit)
}

// collected is an object that each collection finds.
type collected struct{ _ *byte }

// watchCollections sets the limit after each collection.
func watchCollections() {
	runtime.SetFinalizer(&collected{new(byte)}, func(*collected) {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		heapMu.Lock()
		if sample[0].Value.Kind() == metrics.KindUint64 && !heapSpared {
			setHeapLimit(sample[0].Value.Uint64())
		}
		heapMu.Unlock()
		watchCollections()
	})
}
