//go:build unix

package node

import (
	"os"
	"runtime"
	"syscall"
)

// become replaces this process by a program; it returns only if that fails.
func become(path string, args []string) error {
	runtime.LockOSThread() // the setting of followParent belongs to the thread
	defer runtime.UnlockOSThread()
	if err := followParent(); err != nil {
		return err
	}
	return syscall.Exec(path, append([]string{"etcd"}, args...), os.Environ())
}
