// Package disk reports the free space of a file system.
package disk

import "syscall"

// Room returns how many bytes are free below dir for this user; ok is false if the system does not say.
func Room(dir string) (free int64, ok bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}
