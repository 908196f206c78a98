package dumplog

import (
	"errors"
	"math"
	"os"
	"syscall"
)

// seekData is SEEK_DATA of lseek(2). It moves only the offset of this descriptor, which pread ignores.
const seekData = 3

// dataFrom returns the offset of the next data at or after off. So the unused rest of a preallocated or sparse segment
// is not read. It returns off if the file system does not support this.
func dataFrom(f *os.File, off int64) int64 {
	n, err := f.Seek(off, seekData)
	switch {
	case err == nil && n > off:
		return n
	case errors.Is(err, syscall.ENXIO): // no data after off
		return math.MaxInt64
	}
	return off
}
