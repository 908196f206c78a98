// Package regular opens files of evidence safely. An open returns at once, and only regular files are opened. They are
// read up to the size they had then. A named pipe would wait for a writer, a device has no end, and a file to which a
// running server appends would never end.
package regular

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// NotRegularError says that a path is not a regular file and was not read.
type NotRegularError struct {
	// What is the type of the file, such as "a named pipe".
	What string
}

// Error implements error.
func (e *NotRegularError) Error() string {
	return fmt.Sprintf("is %s, not a regular file; skipped", e.What)
}

// TooLargeError says that a file is larger than the limit for files read into memory.
type TooLargeError struct{ Size, Limit int64 }

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("is larger than %s, the limit for such a file: it has %d bytes", plural.Size(e.Limit), e.Size)
}

// Open opens a regular file for reading, also through a symbolic link, and returns its size at that moment. For
// anything else it returns a *NotRegularError inside a *fs.PathError. It never waits: the open is non-blocking, and the
// type is checked again after it, in case the file was replaced.
func Open(path string) (*os.File, int64, error) {
	st, err := os.Stat(path) // opening a device can have side effects
	if err != nil {
		return nil, 0, err
	}
	if err := check(path, st.Mode()); err != nil {
		return nil, 0, err
	}
	//nolint:forbidigo // read-only; os.Open would block on a pipe
	//nolint:forbidigo // read-only; os.Open would wait for a pipe
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, 0, err
	}
	if st, err = f.Stat(); err == nil {
		err = check(path, st.Mode())
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

func check(path string, mode fs.FileMode) error {
	if mode.IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: &NotRegularError{What: What(mode)}}
}

// ReadFile reads a regular file of at most limit bytes. For a larger one it returns a *TooLargeError inside a
// *fs.PathError.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, size, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: &TooLargeError{Size: size, Limit: limit}}
	}
	b := make([]byte, size)
	n, err := io.ReadFull(f, b)
	if err == io.ErrUnexpectedEOF || err == io.EOF { //nolint:errorlint // returned unwrapped; the file was cut
		err = nil
	}
	return b[:n], err
}

// What describes the type of a file.
func What(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
