//go:build unix

package run

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a hook and all it starts into a process group of their own, so that ending it ends what hangs and not
// only the shell.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
