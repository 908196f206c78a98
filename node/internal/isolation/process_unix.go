//go:build unix

package isolation

import (
	"errors"
	"syscall"
)

// ownGroup starts the process in a new process group.
func ownGroup(a *syscall.SysProcAttr) { a.Setpgid = true }

// signalGroup signals a process and those that it started. It does nothing if they have ended.
func signalGroup(pid int, s syscall.Signal) error {
	if err := syscall.Kill(-pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
