package ground

import "syscall"

// dieWithParent makes the kernel kill the process when its parent ends, however that comes about.
func dieWithParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGKILL
	return a
}
