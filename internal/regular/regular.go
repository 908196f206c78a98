// Package regular opens files of evidence. Whatever a name in a data dir leads to, an open returns at once, and what it
// returns is a regular file of which no more is read than it held at that moment: a named pipe would wait for a writer,
// a device has no end, and a file that a running server appends to never comes to its end.
package regular

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// NotRegularError says that a name leads to something that is not a regular file; such things are not read.
type NotRegularError struct {
	// What it is: "a named pipe", say.
	What string
}

// Error implements error.
func (e *NotRegularError) Error() string {
	return fmt.Sprintf("is %s and not a regular file; it is not read", e.What)
}

// TooLargeError says that a file is larger than what is read into memory.
type TooLargeError struct{ Size, Limit int64 }

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("has %d bytes, more than the %d that are read of such a file", e.Size, e.Limit)
}

// Open opens a regular file for reading, also behind a symbolic link, and returns it with its size at that moment.
// Everything else is a *NotRegularError inside of a *fs.PathError. Open never waits: the open itself is not blocking,
// and what was opened is looked at again, so that a file replaced in between makes no difference.
func Open(path string) (*os.File, int64, error) {
	st, err := os.Stat(path) // opening a device can do something
	if err != nil {
		return nil, 0, err
	}
	if err := check(path, st.Mode()); err != nil {
		return nil, 0, err
	}
	//nolint:forbidigo // read-only; os.Open cannot be told not to wait
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

// ReadFile reads a regular file of at most limit bytes; a larger one is a *TooLargeError inside of a *fs.PathError.
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
	if err == io.ErrUnexpectedEOF || err == io.EOF { //nolint:errorlint // io.ReadFull returns these unwrapped; the file was cut since
		err = nil
	}
	return b[:n], err
}

// What names the type of a file in words.
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
