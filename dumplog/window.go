package dumplog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/etcd-medic/etcd-medic/internal/progress"
)

const (
	// blockSize is the size of one read: large enough to make system calls cheap, small enough that the CRC pass finds
	// the block in the second-level cache.
	blockSize = 256 << 10
	sector    = 512
)

var zeroBlock [64 << 10]byte

// window reads a file through one sliding buffer by pread. So a file that shrinks or fails during reading cannot crash
// the process. The slices are valid until the next call of at.
type window struct {
	ctx  context.Context
	f    *os.File
	size int64
	buf  []byte
	base int64 // file offset of buf[0]
	n    int   // valid bytes in buf
	work *progress.Work
}

// at returns the n bytes at off, fewer only if the file ends before. The caller bounds n by the file size.
func (w *window) at(off int64, n int) ([]byte, error) {
	if off < w.base || off+int64(n) > w.base+int64(w.n) {
		if err := w.fill(off, n); err != nil {
			return nil, err
		}
	}
	i := int(off - w.base)
	return w.buf[i:min(i+n, w.n)], nil
}

// fill moves the window to off and reads at least n bytes there, if the file has them.
func (w *window) fill(off int64, n int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	kept := 0
	if i := off - w.base; i >= 0 && i < int64(w.n) {
		kept = w.n - int(i)
		if n > len(w.buf) {
			w.grow(int(i), kept, n)
		} else {
			copy(w.buf, w.buf[i:w.n])
		}
	} else if n > len(w.buf) {
		w.grow(0, 0, n)
	}
	w.base, w.n = off, kept
	want := min(int64(len(w.buf)), w.size-off)
	if want <= int64(kept) {
		return nil
	}
	m, err := w.f.ReadAt(w.buf[kept:want], off+int64(kept))
	w.n += m
	w.work.Add(m)
	if errors.Is(err, io.EOF) { // the file shrank since it was opened
		w.size = off + int64(w.n)
		err = nil
	}
	return err
}

// grow makes room for n bytes. The next record may be a little longer; of long ones only the memory counts.
func (w *window) grow(from, kept, n int) {
	nb := make([]byte, max(int(min(blockSize, w.size+wordSize)), n+min(n/4, blockSize)))
	copy(nb, w.buf[from:from+kept])
	w.buf = nb
}

// nonZero returns the offset of the first byte at or after off that is not zero, or the file size.
func (w *window) nonZero(off int64) (int64, error) {
	for off < w.size {
		if next := dataFrom(w.f, off); next > off {
			off = min(next, w.size)
			continue
		}
		b, err := w.at(off, int(min(blockSize, w.size-off)))
		if err != nil {
			return off, err
		}
		if i := firstNonZero(b); i < len(b) {
			return off + int64(i), nil
		}
		if len(b) == 0 {
			break
		}
		off += int64(len(b))
	}
	return w.size, nil
}

// lastNonZero returns the offset after the last byte in [from, size) that is not zero, or from.
func (w *window) lastNonZero(from int64) (int64, error) {
	end := from
	for off := from; off < w.size; {
		p, err := w.nonZero(off)
		if err != nil || p >= w.size {
			return end, err
		}
		b, err := w.at(p, int(min(blockSize, w.size-p)))
		if err != nil {
			return end, err
		}
		i := len(b)
		for i > 0 && b[i-1] == 0 {
			i--
		}
		end, off = p+int64(i), p+int64(len(b))
	}
	return end, nil
}

func firstNonZero(b []byte) int {
	i := 0
	for len(b)-i >= len(zeroBlock) && bytes.Equal(b[i:i+len(zeroBlock)], zeroBlock[:]) {
		i += len(zeroBlock)
	}
	for len(b)-i >= sector && bytes.Equal(b[i:i+sector], zeroBlock[:sector]) {
		i += sector
	}
	for i < len(b) && b[i] == 0 {
		i++
	}
	return i
}

// zeroSector reports whether one of the sectors that the bytes at file offset off overlap contains only zeros. This is
// etcd's test for a torn write (wal/decoder.go, isTornEntry). If whole is set, only full sectors count.
func zeroSector(b []byte, off int64, whole bool) bool {
	for len(b) > 0 {
		n := min(int(sector-off%sector), len(b))
		if (n == sector || !whole) && firstNonZero(b[:n]) == n {
			return true
		}
		b, off = b[n:], off+int64(n)
	}
	return false
}
