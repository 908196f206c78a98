package cli

import (
	"os/exec"
	"os/signal"
	"syscall"
)

// endWithUs makes the kernel hang up on a command of the user when the thread that starts it ends, also by SIGKILL.
// Under nohup, commands ignore that signal: they are asked to end.
func endWithUs(cmd *exec.Cmd) {
	end := syscall.SIGHUP
	if signal.Ignored(end) {
		end = syscall.SIGTERM
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: end}
}
