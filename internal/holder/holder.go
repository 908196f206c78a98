// Package holder finds out which process has a lock on a file. It neither takes nor requests the lock, so the evidence
// does not change and a starting server is not blocked.
package holder

import (
	"errors"
	"fmt"
)

// Lock is a lock that a process has on a file.
type Lock struct {
	Path string
	// Kind is flock, which bbolt uses for databases, or fcntl, which etcd uses for segments of its log.
	Kind string
	// PID is the process, 0 if the system does not say; Command is its name, "" if it cannot be read.
	PID     int
	Command string
}

// String describes the lock and its process.
func (l Lock) String() string {
	who := "a process"
	if l.PID > 0 {
		who = fmt.Sprintf("process %d", l.PID)
		if l.Command != "" {
			who += " (" + l.Command + ")"
		}
	}
	return who
}

// ErrUnknown means that this system does not report locks.
var ErrUnknown = errors.New("this system does not report which process has a lock")
