// Package pack writes a .tar.zst as a stream: little memory, nothing twice, one digest per file. Same contents and
// times give the same bytes.
package pack

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
)

// window is how far back zstd looks: small, since a server shares the memory.
const window = 1 << 20

// copyBuffer is what one read asks for.
const copyBuffer = 128 << 10

// Writer packs files one after the other.
type Writer struct {
	z     *zstd.Encoder
	t     *tar.Writer
	buf   []byte
	files []File
}

// File is what was packed.
type File struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
	SHA256  string    `json:"sha256"`
}

// NewWriter writes to w, which the caller closes.
func NewWriter(w io.Writer) (*Writer, error) {
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	return &Writer{z: z, t: tar.NewWriter(z), buf: make([]byte, copyBuffer)}, nil
}

// Add packs one file of exactly size bytes; a reader that holds less is an error. What it holds beyond is not read.
func (w *Writer) Add(name string, size int64, modTime time.Time, r io.Reader) (File, error) {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: modTime,
		Format: tar.FormatPAX}
	if err := w.t.WriteHeader(h); err != nil {
		return File{}, err
	}
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(w.t, sum)}, struct{ io.Reader }{io.LimitReader(r, size)},
		w.buf)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return File{}, fmt.Errorf("%s: %d of %d bytes: %w", name, n, size, err)
	}
	f := File{Name: name, Size: size, ModTime: modTime, SHA256: hex.EncodeToString(sum.Sum(nil))}
	w.files = append(w.files, f)
	return f, nil
}

// Files are the files packed so far, in order.
func (w *Writer) Files() []File { return w.files }

// Close ends the archive. What it was written to stays open.
func (w *Writer) Close() error { return errors.Join(w.t.Close(), w.z.Close()) }

// Abandon gives the memory back of an archive that is not finished.
func (w *Writer) Abandon() {
	w.z.Reset(io.Discard)
	_ = w.z.Close()
}
