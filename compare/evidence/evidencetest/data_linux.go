package evidencetest

import (
	"errors"
	"os"
	"syscall"
)

// seekData is SEEK_DATA of lseek(2), which package io does not define.
const seekData = 3

// nextData returns the offset of the next byte outside a sparse extent, at or after off; size if there is none.
func nextData(f *os.File, off, size int64) int64 {
	next, err := f.Seek(off, seekData)
	if errors.Is(err, syscall.ENXIO) {
		return size
	}
	if err != nil {
		return off // this file system does not report sparse extents: read everything
	}
	return next
}
