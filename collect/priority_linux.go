package collect

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ioprio_get and ioprio_set have no wrapper. who is a thread; the class is in the bits from ioClass on, and the lowest
// level of the class "best effort" is asked for.
const (
	ioWhoThread  = 1
	ioClass      = 13
	ioIdle       = 3
	ioBestEffort = 2<<ioClass | 7
)

// Yield lowers the CPU and disk priority of this process, if it is not as low already. Linux keeps both per thread;
// later threads inherit them.
func Yield(nice int) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := yieldCPU(id, nice); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("priority %d: %w", nice, err)
		}
		if err := yieldDisk(id); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOSYS) {
			return fmt.Errorf("disk priority: %w", err)
		}
	}
	return nil
}

func yieldCPU(thread, nice int) error {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, thread)
	if err != nil {
		return err
	}
	if 20-p >= nice { // the system call gives 20 minus the niceness
		return nil
	}
	return unix.Setpriority(unix.PRIO_PROCESS, thread, nice)
}

func yieldDisk(thread int) error {
	p, _, no := unix.Syscall(unix.SYS_IOPRIO_GET, ioWhoThread, uintptr(thread), 0)
	if no == 0 && p>>ioClass == ioIdle {
		return nil
	}
	if _, _, no = unix.Syscall(unix.SYS_IOPRIO_SET, ioWhoThread, uintptr(thread), ioBestEffort); no != 0 {
		return no
	}
	return nil
}
