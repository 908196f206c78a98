package node

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeMemory runs the server from an in-memory file. So it also runs where temporary folders are mounted noexec. The
// file stays open in the server: where the kernel starts an interpreter for the program (binfmt_misc, as with
// qemu-user), that opens the path once more.
func becomeMemory(version string, args []string) error {
	name := "etcd-" + version
	fd, err := unix.MemfdCreate(name, unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // kernels before 6.3 do not know MFD_EXEC
		fd, err = unix.MemfdCreate(name, 0)
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

// followParent asks the kernel to end this process when its parent ends. The start of the process asked for it too, but
// the setting belongs to a thread, and the thread that becomes the program may be another one. Without it, servers
// sometimes outlive a killed sandbox.
func followParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != parent {
		return errors.New("the process that started this one has ended")
	}
	return nil
}
