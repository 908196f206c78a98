package dumpdb

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// file is the read side: pread only, no lock, no map. A map would be faster by one copy, but a file cut by somebody
// else while it is mapped kills the process.
type file struct {
	r      io.ReaderAt
	closer io.Closer
	size   int64 // whole file
	data   int64 // without the sha256 trailer
}

// trailerSize is what snapshot save appends: a raw sha256 (server/etcdserver/api/v3rpc/maintenance.go).
const trailerSize = 32

func openFile(path string) (*file, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err != nil {
		f.Close()
		return nil, err
	}
	return newFile(f, f, st.Size()), nil
}

func newFile(r io.ReaderAt, c io.Closer, size int64) *file {
	f := &file{r: r, closer: c, size: size, data: size}
	if size%512 == trailerSize {
		f.data = size - trailerSize
	}
	return f
}

// errShort tells that the file ends inside what was to be read.
var errShort = errors.New("the file ends here")

// read fills b from off. It returns how much could be read; errShort when the data ends before.
func (f *file) read(b []byte, off int64) (int, error) {
	if off < 0 || off >= f.data {
		return 0, errShort
	}
	want := b
	if int64(len(b)) > f.data-off {
		want = b[:f.data-off]
	}
	n, err := f.r.ReadAt(want, off)
	if n == len(want) {
		err = nil
	}
	if err == nil && n < len(b) || errors.Is(err, io.EOF) {
		err = errShort
	}
	return n, err
}
