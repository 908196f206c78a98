//go:build unix

package spill

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapPart maps n bytes of the file at off, for which it takes the room on the disk first.
func mapPart(f *os.File, off int64, n int) ([]byte, error) {
	if err := allocate(f, off, n); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), off, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// writeZeros takes room on a disk by writing.
func writeZeros(f *os.File, off int64, n int) error {
	zeros := make([]byte, 1<<20)
	for n > 0 {
		m, err := f.WriteAt(zeros[:min(n, len(zeros))], off)
		if err != nil {
			return err
		}
		off, n = off+int64(m), n-m
	}
	return nil
}
