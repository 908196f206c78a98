package isolation

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent makes the kernel kill the process when its parent ends, for any reason.
func dieWithParent(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = syscall.SIGKILL
	return a
}

// runs reports whether a process that is not a child of this one still runs. A zombie does not.
func runs(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
