//go:build unix

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks an open file; held is true if another process, or another run in this one, has the lock. The kernel
// releases a lock when its process ends.
func tryLock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// unlock releases the lock before the file is closed: a process that this program is starting has the file open too,
// until it runs.
func unlock(f *os.File) {
	if f == nil {
		return
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}
