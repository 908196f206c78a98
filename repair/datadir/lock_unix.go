//go:build unix

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of an open file; held is true when another process, or another run in this one, has it. The
// kernel gives a lock back when its process ends, however it ends.
func tryLock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// unlock gives the lock back before the file is closed: a process that is being started elsewhere in this program holds
// the file too, until it runs.
func unlock(f *os.File) {
	if f == nil {
		return
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}
