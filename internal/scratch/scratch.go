// Package scratch makes the folders that commands work in and removes them, also for a command that is given up because
// it did not end in time. It bounds what they may take of the disk.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/etcd-medic/etcd-medic/internal/disk"
)

var (
	mu   sync.Mutex
	dirs = map[string]bool{}
)

// Dir makes a new folder below parent ("" is the system's folder for temporary files) and returns its absolute path.
func Dir(parent, pattern string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", err
	}
	mu.Lock()
	defer mu.Unlock()
	dirs[dir] = true
	return dir, nil
}

// Remove removes a folder that Dir made.
func Remove(dir string) error {
	mu.Lock()
	known := dirs[dir]
	delete(dirs, dir)
	mu.Unlock()
	if !known {
		return nil
	}
	return os.RemoveAll(dir) //nolint:forbidigo // Dir made it
}

// RemoveAll removes every folder that is left, for a process that ends.
func RemoveAll() error {
	mu.Lock()
	left := make([]string, 0, len(dirs))
	for d := range dirs {
		left = append(left, d)
	}
	mu.Unlock()
	var errs []error
	for _, d := range left {
		errs = append(errs, Remove(d))
	}
	return errors.Join(errs...)
}

// maxReserve is the most of a disk that is left free for others.
const maxReserve = 1 << 30

// Budget is how many bytes may be written below dir: the room of its disk less a tenth, of which 1 GiB at most. It has
// no bound where the system does not tell.
func Budget(dir string) int64 {
	free, ok := disk.Room(dir)
	if !ok {
		return 1<<63 - 1
	}
	return free - min(free/10, maxReserve)
}

// RoomError says that what is to be written does not fit.
type RoomError struct {
	Dir string
	// Allowed is the budget in bytes.
	Allowed int64
}

// Error implements error.
func (e *RoomError) Error() string {
	return fmt.Sprintf("more than the %d MiB that may be written below %s; free some room there, or set TMPDIR to a "+
		"folder on another disk", e.Allowed>>20, e.Dir)
}
