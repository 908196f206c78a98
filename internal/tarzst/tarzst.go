// Package tarzst writes and reads archives (.tar.zst) as a stream. They end with a manifest: the name, size and sha256
// of every file in them.
//
// The same files in the same order give the same bytes: an entry has no owner, and only the time that the caller sets.
package tarzst

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// ManifestName is the last file of an archive.
const ManifestName = "manifest.json"

// manifestFormat is the version of the manifest's layout.
const manifestFormat = 1

// Manifest lists the files of an archive in the order in which they were written, except itself.
type Manifest struct {
	Format int    `json:"format"`
	Kind   string `json:"kind"`
	Files  []File `json:"files"`
}

// File is one file of a manifest.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Entry describes a file in the archive.
type Entry struct {
	// Name is a relative path with slashes. Every name must be different.
	Name string
	// Size is how many bytes are read from the file.
	Size int64
	// Mode is the permission bits; 0 means 0600.
	Mode fs.FileMode
	// Time is the modification time; the zero value means the start of 1970.
	Time time.Time
}

// Options tune a Writer.
type Options struct {
	// Kind is the kind of the archive, such as "report".
	Kind string
	// Fast trades size for speed.
	Fast bool
	// Small limits the memory of the compressor to a few MiB, for hosts that also run a server.
	Small bool
	// Bare omits the manifest; the caller adds its own as the last file.
	Bare bool
}

// smallWindow is the compressor's window with Options.Small.
const smallWindow = 512 << 10

// bufferSize is the size of one read.
const bufferSize = 128 << 10

// Writer writes an archive. After an error of any method the archive is useless.
type Writer struct {
	zst      *zstd.Encoder
	tar      *tar.Writer
	manifest Manifest
	names    map[string]bool
	bare     bool
	buf      []byte
}

// NewWriter starts an archive. The caller must call Close.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	level := zstd.SpeedDefault
	if o.Fast {
		level = zstd.SpeedFastest
	}
	opts := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level)}
	if o.Small {
		opts = append(opts, zstd.WithWindowSize(smallWindow), zstd.WithLowerEncoderMem(true))
	}
	z, err := zstd.NewWriter(w, opts...)
	if err != nil {
		return nil, err
	}
	return &Writer{zst: z, tar: tar.NewWriter(z),
		manifest: Manifest{Format: manifestFormat, Kind: o.Kind, Files: []File{}},
		names:    map[string]bool{ManifestName: !o.Bare}, bare: o.Bare,
		buf: make([]byte, bufferSize)}, nil
}

// Add writes a file. It returns an error if r has fewer than e.Size bytes; it ignores bytes after them.
func (w *Writer) Add(e Entry, r io.Reader) error {
	if !fs.ValidPath(e.Name) || e.Name == "." {
		return fmt.Errorf("%q cannot be a name in an archive", e.Name)
	}
	if w.names[e.Name] {
		return fmt.Errorf("%q would be in the archive twice", e.Name)
	}
	w.names[e.Name] = true
	sum := sha256.New()
	if err := w.put(e, io.TeeReader(io.LimitReader(r, e.Size), sum)); err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	w.manifest.Files = append(w.manifest.Files,
		File{Name: e.Name, Size: e.Size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func (w *Writer) put(e Entry, r io.Reader) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.Name, Size: e.Size, Mode: 0o600, ModTime: time.Unix(0, 0).UTC(),
		Format: tar.FormatPAX}
	if e.Mode != 0 {
		h.Mode = int64(e.Mode.Perm())
	}
	if !e.Time.IsZero() {
		h.ModTime = e.Time.UTC()
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{w.tar}, r, w.buf)
	if err == nil && n < e.Size {
		err = fmt.Errorf("ends after %s: %w", plural.SizeOf(n, e.Size), io.ErrUnexpectedEOF)
	}
	return err
}

// onlyWriter hides tar.Writer's ReadFrom, so that the copy uses the given buffer.
type onlyWriter struct{ io.Writer }

// Manifest returns the files written so far.
func (w *Writer) Manifest() Manifest { return w.manifest }

// Abandon frees the memory of an unfinished archive.
func (w *Writer) Abandon() {
	w.zst.Reset(io.Discard)
	_ = w.zst.Close()
}

// Close writes the manifest, unless the archive is bare, and ends the archive. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.bare {
		return errors.Join(w.tar.Close(), w.zst.Close())
	}
	b, err := json.MarshalIndent(w.manifest, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if err := w.put(Entry{Name: ManifestName, Size: int64(len(b))}, bytes.NewReader(b)); err != nil {
		return err
	}
	return errors.Join(w.tar.Close(), w.zst.Close())
}
