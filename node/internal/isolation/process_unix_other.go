//go:build unix && !linux

package isolation

import "syscall"

// runs reports whether a process that is not a child of this one still runs.
func runs(pid int) bool { return syscall.Kill(pid, 0) == nil }
