package dumpdb

import (
	"context"
	"errors"
	"io"

	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// file reads with pread only: no lock, no map. A map would save one copy, but truncating a mapped file kills the
// process.
type file struct {
	ctx    context.Context //nolint:containedctx // it ends every loop that reads
	r      io.ReaderAt
	closer io.Closer
	size   int64 // whole file
	data   int64 // without the sha256 trailer
	work   *progress.Work
}

// trailerSize is the size of the raw sha256 that snapshot save appends (server/etcdserver/api/v3rpc/maintenance.go).
const trailerSize = 32

func openFile(ctx context.Context, path string) (*file, error) {
	f, size, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	db := newFile(f, f, size)
	db.ctx, db.work = ctx, progress.From(ctx)
	return db, nil
}

func newFile(r io.ReaderAt, c io.Closer, size int64) *file {
	f := &file{ctx: context.Background(), r: r, closer: c, size: size, data: size}
	if size%512 == trailerSize {
		f.data = size - trailerSize
	}
	return f
}

// errShort means that the file ends inside the data to read.
var errShort = errors.New("the file ends here")

// read fills b from off. It returns how much it could read, and errShort if the data ends before.
func (f *file) read(b []byte, off int64) (int, error) {
	if off < 0 || off >= f.data {
		return 0, errShort
	}
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	want := b
	if int64(len(b)) > f.data-off {
		want = b[:f.data-off]
	}
	n, err := f.r.ReadAt(want, off)
	f.work.Add(n)
	if n == len(want) {
		err = nil
	}
	if err == nil && n < len(b) || errors.Is(err, io.EOF) {
		err = errShort
	}
	return n, err
}

// ended reads the whole file from front to end until the context ends.
type ended struct{ f *file }

// ReadAt implements io.ReaderAt.
func (e ended) ReadAt(b []byte, off int64) (int, error) {
	if err := e.f.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := e.f.r.ReadAt(b, off)
	e.f.work.Add(n)
	return n, err
}
