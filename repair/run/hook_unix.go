//go:build unix

package run

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a hook and all processes that it starts into a separate process group, so that ending it ends all of
// them and not only the shell.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
