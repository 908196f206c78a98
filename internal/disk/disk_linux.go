// Package disk tells how much room a file system has.
package disk

import "syscall"

// Room is how many bytes are free below dir for this user; ok is false when the system does not tell.
func Room(dir string) (free int64, ok bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}
