package collect

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ioprio_set has no wrapper. who is a thread; the class is best effort with the lowest level.
const (
	ioWhoThread  = 1
	ioBestEffort = 2<<13 | 7
)

// Yield lowers the CPU and disk priority of this process. Linux keeps both per thread; later threads inherit them.
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
		if err := unix.Setpriority(unix.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("priority %d: %w", nice, err)
		}
		if _, _, no := unix.Syscall(unix.SYS_IOPRIO_SET, ioWhoThread, uintptr(id), ioBestEffort); no != 0 &&
			no != unix.ESRCH && no != unix.ENOSYS {
			return fmt.Errorf("disk priority: %w", no)
		}
	}
	return nil
}
