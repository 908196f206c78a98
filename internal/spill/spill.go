// Package spill gives memory that a file on a disk backs, for tables that are larger than the memory a run may take.
// The system writes such memory to the file when it needs the room, and reads it again when it is used.
package spill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// Area hands out memory of one file. It may be used from several goroutines. A nil Area has none.
type Area struct {
	mu     sync.Mutex
	parent string
	file   *os.File
	// size is how long the file is, rest what is left of the part that was mapped last.
	size int64
	rest []byte
	// free are the pieces that were given back, by their size.
	free map[int][][]byte
	err  error
}

const (
	// partSize is how much is mapped at once, and pieceSize what each piece is a multiple of, in bytes.
	partSize  = 64 << 20
	pieceSize = 4 << 10
)

// errNoFile means that the system, or the file system of the folder, has no memory that a file backs.
var errNoFile = errors.New("memory cannot be kept in a file here")

// New returns an area whose file is made below a folder ("" is the system's folder for temporary files) when the first
// piece is taken. The file has no name, so that it is gone when the process ends, however it ends.
func New(parent string) *Area { return &Area{parent: parent, free: map[int][][]byte{}} }

// Take returns n bytes that are zero, nil if there are none: Err says why. They are never moved, and valid until the
// process ends or Give takes them back.
func (a *Area) Take(n int) []byte {
	if a == nil || n <= 0 {
		return nil
	}
	n = (n + pieceSize - 1) / pieceSize * pieceSize
	a.mu.Lock()
	defer a.mu.Unlock()
	if list := a.free[n]; len(list) > 0 {
		piece := list[len(list)-1]
		a.free[n] = list[:len(list)-1]
		clear(piece)
		return piece
	}
	if len(a.rest) < n {
		part, err := a.grow((n + partSize - 1) / partSize * partSize) // the next one begins at a page of any size
		if err != nil {
			a.err = err
			return nil
		}
		if len(part)-n < len(a.rest) { // a large piece has its own part
			return part[:n:n]
		}
		a.rest = part
	}
	piece := a.rest[:n:n]
	a.rest = a.rest[n:]
	return piece
}

// Give takes a piece back that nothing refers to any more.
func (a *Area) Give(piece []byte) {
	if a == nil || len(piece) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free[len(piece)] = append(a.free[len(piece)], piece)
}

// Err says why Take returned nothing, nil if it never did. Of a nil Area it is nil.
func (a *Area) Err() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Size returns the size of the file in bytes.
func (a *Area) Size() int64 {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size
}

// grow maps the next n bytes of the file. The disk has them: memory that it has no room for would end the process.
func (a *Area) grow(n int) ([]byte, error) {
	parent := a.parent
	if parent == "" {
		parent = os.TempDir()
	}
	if a.file == nil {
		f, err := open(parent)
		if err != nil {
			return nil, err
		}
		a.file = f
	}
	if allowed := scratch.Budget(parent); int64(n) > allowed {
		return nil, &scratch.RoomError{Dir: parent, Allowed: allowed}
	}
	part, err := mapPart(a.file, a.size, n)
	if err != nil {
		return nil, fmt.Errorf("a file below %s for what does not fit in memory: %w", parent, err)
	}
	a.size += int64(n)
	return part, nil
}

// open makes the file and removes its name.
func open(parent string) (*os.File, error) {
	if !backed(parent) {
		return nil, fmt.Errorf("%s: %w", parent, errNoFile)
	}
	dir, err := scratch.Dir(parent, "etcd-medic-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "spill")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:forbidigo // a new file
	return f, errors.Join(err, scratch.Remove(dir))
}
