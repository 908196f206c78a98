package cli

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/internal/memory"
	"github.com/etcd-medic/etcd-medic/internal/spill"
)

// sizeFlag is a number of bytes, as 2GiB.
type sizeFlag struct {
	bytes *int64
	least uint64
}

// String returns the size that is set; pflag also calls it on a zero value.
func (v *sizeFlag) String() string {
	if v.bytes == nil || *v.bytes == 0 {
		return ""
	}
	return sizeOf(*v.bytes)
}

// Type names the flag's argument in the help.
func (v *sizeFlag) Type() string { return "size" }

// Set accepts what people write for a number of bytes: 2GiB, 2Gi, 2G, 500MB, 2147483648.
func (v *sizeFlag) Set(s string) error {
	n, err := humanize.ParseBytes(s)
	if err != nil {
		return errors.New("write it like 2GiB")
	}
	if n > math.MaxInt64 {
		return errors.New("it is more than any machine has")
	}
	if n < v.least {
		return fmt.Errorf("it is less than %s", humanize.IBytes(v.least))
	}
	*v.bytes = int64(n)
	return nil
}

func sizeOf(n int64) string { return humanize.IBytes(uint64(max(n, 0))) } //nolint:gosec // not below 0

// memoryFlag adds --max-memory to a command.
func (s *Streams) memoryFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().Var(&sizeFlag{&s.maxMemory, memory.Least}, "max-memory",
		"memory that a run may take, as 2GiB (default: three quarters of what there is)")
}

// boundMemory sets the limit of this process. It does nothing in a process that does other work, too.
func (s *Streams) boundMemory() {
	if s.memory == nil {
		return
	}
	n := s.maxMemory
	if n == 0 {
		n = ownLimit()
	}
	if n > 0 {
		memory.SetLimit(n)
		memory.SetArea(spill.New(""))
		s.memory.bound(n)
		capHeap(n)
	}
}

// ownLimit is the limit that no flag sets: what the environment sets for Go, otherwise three quarters of the memory of
// the machine or of the control group; 0 if that is not known.
func ownLimit() int64 {
	if n := debug.SetMemoryLimit(-1); heapFromEnv() && n < math.MaxInt64 {
		return max(n, memory.Least) // for Go it is a target, not an end
	}
	least := uint64(math.MaxInt64)
	for _, from := range []func() (uint64, error){memlimit.FromSystem, memlimit.FromCgroup} {
		if n, err := from(); err == nil && n > 0 {
			least = min(least, n)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return int64(max(least/4*3, memory.Least)) //nolint:gosec // not above MaxInt64
}

// memoryError is the end of a run that needs more memory than it may take.
type memoryError struct{ live, limit int64 }

// Error says how much is in use.
func (e *memoryError) Error() string {
	return fmt.Sprintf("stopped: %s of memory are in use, of %s that the run may take", sizeOf(e.live), sizeOf(e.limit))
}

// memoryHint says what to do about a memoryError.
const memoryHint = "give it more with --max-memory, or fewer sources at once"

// memoryBound watches what is live in the heap.
type memoryBound struct {
	mu    sync.Mutex
	limit int64
	err   *memoryError
	over  chan struct{}
}

func newMemoryBound() *memoryBound {
	return &memoryBound{limit: math.MaxInt64, over: make(chan struct{})}
}

func (b *memoryBound) bound(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
}

// watch takes what a collection found live. The heap needs some room above that, or it is collected all the time.
func (b *memoryBound) watch(live uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && live > uint64(b.limit)/16*15 { //nolint:gosec // above 0
		b.err = &memoryError{int64(min(live, math.MaxInt64)), b.limit} //nolint:gosec // bounded
		close(b.over)
	}
}
