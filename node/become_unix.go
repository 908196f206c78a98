//go:build unix

package node

import (
	"os"
	"syscall"
)

// become replaces this process by a program; it returns only if that fails.
func become(path string, args []string) error {
	return syscall.Exec(path, append([]string{"etcd"}, args...), os.Environ())
}
