package node

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeMemory runs the server from a file that exists in memory only, so that it also runs where temporary folders may
// not hold programs.
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

// parent is the process that started this one.
var parent = os.Getppid()

// followParent has the kernel end this process when its parent ends. That was asked for when the process was started,
// but it is kept by thread, and the thread that becomes the program need not be the first: without this, servers
// outlive a killed sandbox now and then.
func followParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != parent {
		return errors.New("the process that started this one has ended")
	}
	return nil
}
