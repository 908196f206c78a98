//go:build !linux

package isolation

import "syscall"

// dieWithParent does nothing: only Linux has a parent-death signal.
func dieWithParent(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }

// runs reports whether a process that is not a child of this one still runs.
func runs(pid int) bool { return syscall.Kill(pid, 0) == nil }
