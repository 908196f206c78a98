package spill

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate takes the room for a part of the file.
func allocate(f *os.File, off int64, n int) error {
	err := unix.Fallocate(int(f.Fd()), 0, off, int64(n))
	if errors.Is(err, unix.EOPNOTSUPP) {
		return writeZeros(f, off, n)
	}
	return err
}

// backed reports whether the files of a folder are on a disk. Those of a tmpfs are in memory.
func backed(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type != unix.TMPFS_MAGIC && st.Type != unix.RAMFS_MAGIC
}
