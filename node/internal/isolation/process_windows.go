package isolation

import (
	"errors"
	"os"
	"syscall"
)

// ownGroup does nothing: there are no groups to signal.
func ownGroup(*syscall.SysProcAttr) {}

// signalGroup ends the process, whatever the signal: Windows has no other.
func signalGroup(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil //nolint:nilerr // it has ended
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// runs reports whether a process that is not a child of this one still runs.
func runs(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
