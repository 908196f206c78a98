// Package scratch creates and removes the working folders of commands, also for a command that was aborted. It bounds
// how much disk space they use.
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

// Dir creates a new folder below parent ("" is the system's folder for temporary files) and returns its absolute path.
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

// Remove removes a folder that Dir created.
func Remove(dir string) error {
	mu.Lock()
	known := dirs[dir]
	delete(dirs, dir)
	mu.Unlock()
	if !known {
		return nil
	}
	return os.RemoveAll(dir) //nolint:forbidigo // created by Dir
}

// RemoveAll removes all remaining folders when the process ends.
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

// maxReserve is the most space in bytes that is left free.
const maxReserve = 1 << 30

// Budget returns how many bytes may be written below dir: the free space of its disk, less a tenth of it or at most 1
// GiB. There is no bound if the system does not report the free space.
func Budget(dir string) int64 {
	free, ok := disk.Room(dir)
	if !ok {
		return 1<<63 - 1
	}
	return free - min(free/10, maxReserve)
}

// RoomError says that the data does not fit on the disk.
type RoomError struct {
	Dir string
	// Allowed is the budget in bytes.
	Allowed int64
}

// Error implements error.
func (e *RoomError) Error() string {
	return fmt.Sprintf("needs more than the %d MiB that may be written below %s; free some space there, or set "+
		"TMPDIR to a "+
		"folder on another disk", e.Allowed>>20, e.Dir)
}
