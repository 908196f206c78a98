package cli

import (
	"os/exec"
	"syscall"
)

// endWithUs makes the kernel hang up on a command of the user when the thread that starts it ends, also by SIGKILL.
func endWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGHUP} }
