//go:build unix

package hooks

import (
	"os/exec"
	"syscall"
)

// OwnGroup puts a hook and all processes that it starts into a separate process group, so that ending it ends all of
// them and not only the hook itself.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
