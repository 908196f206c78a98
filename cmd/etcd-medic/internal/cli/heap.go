package cli

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
)

const (
	// sparePercent is how much the heap grows between collections while the inputs are small. With large ones it grows
	// to its limit: little of the data read stays in memory. A page that the heap has not had before takes longer than
	// to collect what is in one, so the limit is low.
	sparePercent = 300
	// easyHeap is the limit, and smallHeap that for small inputs, which take less than 300 MB with the program itself.
	// A larger heap grows by a part of what is live in it, with large inputs at least by roomyHeap.
	easyHeap  = 128 << 20
	roomyHeap = 96 << 20
	smallHeap = 176 << 20
	// smallInput is up to how many bytes an input is small. smallFiles is how many files are looked at for that.
	smallInput = 16 << 20
	smallFiles = 100_000
	// tightPart is that part, and leastPart the part where the heap is near to what the process may take.
	tightPart = 4
	leastPart = 16
)

// heapSpared is true while a command has its own limit.
var (
	heapMu     sync.Mutex
	heapSpared bool
	heapEasy   uint64 = easyHeap
	heapRoom   uint64 = roomyHeap
	heapMost   uint64 = math.MaxInt64
)

// heapFromEnv reports whether the user set the limit of the heap in the environment.
func heapFromEnv() bool { return os.Getenv("GOMEMLIMIT") != "" }

// boundHeap makes the collector spare time while the heap is small, and memory when it is large. What the user set in
// the environment is left alone. The arguments say how large the inputs are, and bound watches the heap.
func boundHeap(args []string, bound *memoryBound) {
	watchCollections(bound.watch)
	ownPercent := os.Getenv("GOGC") == ""
	if ownPercent {
		debug.SetGCPercent(sparePercent)
	}
	if !heapFromEnv() {
		heapEasy, heapRoom = smallHeap, 0
		setHeapLimit(0)
		watchCollections(followHeap)
		go func() { // a folder may be on a host that does not answer
			if isSmallInput(args) {
				return
			}
			heapMu.Lock()
			defer heapMu.Unlock()
			if heapEasy, heapRoom = easyHeap, roomyHeap; heapSpared {
				return
			}
			setHeapLimit(0)
			if ownPercent {
				debug.SetGCPercent(-1)
			}
		}()
	}
}

// setHeapLimit sets the size above which the collector works more, with so much live in the heap. A limit near to what
// is live would have it work all the time.
func setHeapLimit(live uint64) {
	limit := max(heapEasy, live+max(live/tightPart, heapRoom))
	limit = min(limit, max(heapMost, live+live/leastPart))
	debug.SetMemoryLimit(int64(min(limit, math.MaxInt64)))
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

// watchCollections calls a function after each collection, with the bytes that are live in the heap.
func watchCollections(see func(live uint64)) {
	runtime.SetFinalizer(&collected{new(byte)}, func(*collected) {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		if sample[0].Value.Kind() == metrics.KindUint64 {
			see(sample[0].Value.Uint64())
		}
		watchCollections(see)
	})
}

// followHeap sets the limit after a collection.
func followHeap(live uint64) {
	heapMu.Lock()
	defer heapMu.Unlock()
	if !heapSpared {
		setHeapLimit(live)
	}
}

// capHeap has the collector work more where the heap is near to a limit.
func capHeap(limit int64) {
	heapMu.Lock()
	defer heapMu.Unlock()
	if heapMost = uint64(limit); !heapSpared && !heapFromEnv() { //nolint:gosec // above 0
		setHeapLimit(0)
	}
}

// isSmallInput reports whether the files that arguments name are small together. It opens folders only, and counts
// links inside of them as large.
func isSmallInput(args []string) bool {
	size, files := int64(0), 0
	add := func(n int64) error {
		if size, files = size+n, files+1; size > smallInput || files > smallFiles {
			return filepath.SkipAll
		}
		return nil
	}
	for _, a := range args {
		for _, path := range []string{a, a[strings.IndexByte(a, '=')+1:]} {
			st, err := os.Stat(path)
			if err != nil {
				continue
			}
			if !st.IsDir() {
				_ = add(st.Size()) // SkipAll shows in the sums
				break
			}
			_ = filepath.WalkDir(path+string(filepath.Separator), func(_ string, d fs.DirEntry, err error) error {
				switch info, infoErr := fileInfo(d, err); {
				case infoErr != nil:
					return nil //nolint:nilerr // whoever reads it says what is wrong with it
				case d.Type()&fs.ModeSymlink != 0:
					return add(smallInput + 1)
				case d.Type().IsRegular():
					return add(info.Size())
				default:
					return add(0)
				}
			})
			break
		}
	}
	return size <= smallInput && files <= smallFiles
}

func fileInfo(d fs.DirEntry, err error) (fs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return d.Info()
}
