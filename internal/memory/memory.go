// Package memory divides the memory that a run may take among what grows with its inputs. What does not fit is left
// out and named by whoever needs it.
package memory

import (
	"math"
	"sync/atomic"

	"github.com/etcd-medic/etcd-medic/internal/spill"
)

// Least is the lowest limit, in bytes: enough for the program itself and inputs of common size.
const Least = 128 << 20

var limit atomic.Int64

// SetLimit sets the limit of this process in bytes, 0 for none. It is for a program to call before it reads anything.
func SetLimit(bytes int64) { limit.Store(bytes) }

// Limit returns the limit in bytes, math.MaxInt64 if there is none.
func Limit() int64 {
	if n := limit.Load(); n > 0 {
		return n
	}
	return math.MaxInt64
}

var area atomic.Pointer[spill.Area]

// SetArea sets where this process keeps what does not fit in memory and cannot be left out, nil for nowhere.
func SetArea(a *spill.Area) { area.Store(a) }

// Area returns what SetArea has set.
func Area() *spill.Area { return area.Load() }

// The parts of the limit. The rest is for what is read at the moment, and for the collector.
const (
	replayPart = 2
	rowsPart   = 8
	confPart   = 8
	keysPart   = 4 // a replay begins after these tables are gone
)

// Replay is how many bytes the keys of a replay may take.
func Replay() int64 { return Limit() / replayPart }

// Rows is how many bytes the rows of all buckets other than key may take, at most most.
func Rows(most int64) int64 { return min(most, Limit()/rowsPart) }

// Conf is how many bytes the conf changes of all logs may take, at most most.
func Conf(most int64) int64 { return min(most, Limit()/confPart) }

// KeyTable is how many keys, of so many bytes each, a pass over bucket key may keep, at most most. Several databases
// are read at a time.
func KeyTable(most int, bytes int64) int {
	return int(min(int64(most), max(Limit()/keysPart/bytes/tables, 1<<16)))
}

// tables is how many databases are read at a time.
const tables = 2
