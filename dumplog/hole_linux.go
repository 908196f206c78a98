package dumplog

import (
	"errors"
	"math"
	"os"
	"syscall"
)

// seekData is SEEK_DATA of lseek(2). It moves only the offset of our own descriptor, which pread ignores.
const seekData = 3

// dataFrom returns the offset of the next data at or behind off, so that the unused rest of a preallocated or sparsely
// copied segment needs no reading. It returns off where the file system cannot tell.
func dataFrom(f *os.File, off int64) int64 {
	n, err := f.Seek(off, seekData)
	switch {
	case err == nil && n > off:
		return n
	case errors.Is(err, syscall.ENXIO): // no data behind off
		return math.MaxInt64
	}
	return off
}
