package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

const (
	// bufferSize is the size of one read.
	bufferSize = 1 << 20
	// holeSize is the shortest run of zeros that becomes a sparse extent: the block size of common file systems.
	holeSize = 4096
)

var zeroBlock [holeSize]byte

// WriteSparse copies r to f from offset 0 and leaves aligned 4 KiB blocks of zeros as sparse extents. f must be empty.
// At the end f has the length of the data. WriteSparse returns that length. It stops at an error of r or f, or when ctx
// ends.
func WriteSparse(ctx context.Context, f *os.File, r io.Reader) (int64, error) {
	return writeSparse(ctx, f, r, make([]byte, bufferSize), nil)
}

// budget is the number of bytes that may still be written to a disk.
type budget struct {
	dir           string
	allowed, left int64
}

// take reserves n bytes; a nil budget has no bound.
func (b *budget) take(n int64) error {
	if b == nil {
		return nil
	}
	if n > b.left {
		return &scratch.RoomError{Dir: b.dir, Allowed: b.allowed}
	}
	b.left -= n
	return nil
}

func writeSparse(ctx context.Context, f *os.File, r io.Reader, buf []byte, room *budget) (int64, error) {
	var off int64
	for {
		if err := ctx.Err(); err != nil {
			return off, err
		}
		n, rerr := fill(r, buf)
		if err := writeData(f, buf[:n], off, room); err != nil {
			return off, err
		}
		off += int64(n)
		if errors.Is(rerr, io.EOF) {
			return off, f.Truncate(off)
		}
		if rerr != nil {
			return off, rerr
		}
	}
}

// fill reads until buf is full. Unlike io.ReadFull it distinguishes the end of r (io.EOF) from a source that reports
// that it is cut short (io.ErrUnexpectedEOF).
func fill(r io.Reader, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := r.Read(buf[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// writeData writes the runs of b that are not zero, starting at offset off.
func writeData(f *os.File, b []byte, off int64, room *budget) error {
	for start := 0; start < len(b); {
		end := blockEnd(start, len(b))
		if isZero(b[start:end]) {
			start = end
			continue
		}
		for end < len(b) {
			next := blockEnd(end, len(b))
			if isZero(b[end:next]) {
				break
			}
			end = next
		}
		if err := room.take(int64(end - start)); err != nil {
			return err
		}
		if _, err := f.WriteAt(b[start:end], off+int64(start)); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func blockEnd(start, size int) int { return min(start+holeSize, size) }

func isZero(b []byte) bool { return bytes.Equal(b, zeroBlock[:len(b)]) }
