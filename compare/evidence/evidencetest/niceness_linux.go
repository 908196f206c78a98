package evidencetest

import "golang.org/x/sys/unix"

// Niceness is that of a thread, or of a process by its first thread; 0 is the calling thread. It is 100 if it cannot be
// read. An ended process has one until it is waited for. The system call gives 20 minus the niceness.
func Niceness(id int) int {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, id)
	if err != nil {
		return 100
	}
	return 20 - p
}
