//go:build !linux

package isolation

import "syscall"

// dieWithParent does nothing: only Linux has a parent-death signal.
func dieWithParent(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
