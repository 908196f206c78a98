// Package holder finds out which process holds a lock on a file, without taking or asking for the lock: evidence stays
// as it is, and a server that starts meanwhile does not meet a lock of ours.
package holder

import (
	"errors"
	"fmt"
)

// Lock is a lock that a process holds on a file.
type Lock struct {
	Path string
	// Kind is flock, which bbolt takes on a database, or fcntl, which etcd takes on segments of its log.
	Kind string
	// PID is the process, 0 when the system does not say which; Command is its name, "" when that cannot be read.
	PID     int
	Command string
}

// String says who holds what.
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

// ErrUnknown says that this system does not tell about locks.
var ErrUnknown = errors.New("this system does not say who holds a lock")
