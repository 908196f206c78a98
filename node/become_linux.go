package node

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// becomeMemory runs the server from a file that exists in memory only, so that it also runs where temporary folders may not hold
// programs.
func becomeMemory(version string, args []string) error {
	name := "etcd-" + version
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // kernels before 6.3 know no MFD_EXEC
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	if err := unpack(version, f); err != nil {
		return errors.Join(err, f.Close())
	}
	return become(fmt.Sprintf("/proc/self/fd/%d", fd), args)
}
