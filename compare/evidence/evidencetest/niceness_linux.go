package evidencetest

import "golang.org/x/sys/unix"

// niceness is that of the current thread; -100 if it cannot be read. The system call gives 20 minus the niceness.
func niceness() int {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return -100
	}
	return 20 - p
}
