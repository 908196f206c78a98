package isolation

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent makes the kernel kill the process when its parent ends, however that comes about.
func dieWithParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGKILL
	return a
}

// runs tells whether a process that is no child of this one still runs; one that only waits to be reaped does not.
func runs(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
