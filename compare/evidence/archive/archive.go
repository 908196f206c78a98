// Package archive unpacks archives of evidence into a scratch directory.
//
// An operator provides data dirs as .tar, .tar.gz (.tgz) or .tar.zst. The format follows from the first bytes, not from
// the name, since renamed archives are common. The archive itself is opened read-only.
//
// etcd preallocates each WAL segment to 64 MB (server/storage/wal/wal.go, SegmentSizeBytes), nearly all of it zeros. So
// runs of zeros are not written but become sparse extents, and unpacked members need about the space of their real
// content. GNU and PAX sparse archives (tar --sparse) are supported.
//
// An archive is hostile input. An entry is refused with an error if its name points outside the destination, if it is a
// symbolic link or a device, if its name occurs twice, or if the content exceeds the limit. A hard link may only point
// to a regular file earlier in the same archive (as in copies made with cp -l).
package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// suffixes are the file name endings that IsArchive accepts, in lower case.
var suffixes = []string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"}

// Magic numbers: RFC 1952 section 2.3.1 for gzip, RFC 8878 section 3.1.1 for zstd.
var (
	magicGzip = []byte{0x1f, 0x8b}
	magicZstd = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

const (
	// maxBytes is the limit of unpacked logical bytes: 256 GiB, about ten times three members at etcd's suggested quota
	// of 8 GiB.
	maxBytes = 256 << 30
	// maxEntries is the limit of names in an archive.
	maxEntries = 100_000
)

// IsArchive reports whether name ends like an archive that Unpack reads: .tar, .tar.gz, .tgz, .tar.zst or .tzst, in
// upper or lower case. It does not open the file.
func IsArchive(name string) bool {
	lower := strings.ToLower(name)
	for _, s := range suffixes {
		if strings.HasSuffix(lower, s) && len(lower) > len(s) {
			return true
		}
	}
	return false
}

// LimitError says that an archive would unpack to more than the caller allows. Nothing of the entry that exceeds the
// limit is written.
type LimitError struct {
	// Name is the entry that exceeds the limit.
	Name string
	// What is counted: "bytes" (logical, sparse extents included) or "entries".
	What string
	// Want is the count with this entry, Limit the maximum.
	Want, Limit int64
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: archive unpacks to at least %d %s, the limit is %d", e.Name, e.Want, e.What, e.Limit)
}

// EntryError says that an archive contains an entry that is not unpacked for safety.
type EntryError struct {
	// Name is the entry as the archive spells it.
	Name string
	// Reason says what is wrong with the entry.
	Reason string
}

// Error implements error.
func (e *EntryError) Error() string { return fmt.Sprintf("entry %q: %s", e.Name, e.Reason) }

// limits bound what an archive may unpack to: the sum of the logical file sizes in bytes, sparse extents included, the
// number of entries, and the bytes written to the disk.
type limits struct {
	bytes   int64
	entries int64
	// disk is the number of bytes that may be written, without sparse extents; 0 means the free space of the disk less
	// a reserve.
	disk int64
}

// Unpack writes the files of the archive into destDir, which is created (mode 0700) if it does not exist. It keeps
// permission bits and modification times, but always leaves the owner able to read, so that scratch can be read and
// removed.
//
// It may use the free space of the disk less a reserve (scratch.Budget). If an archive needs more, it returns a
// *scratch.RoomError.
//
// It returns a *LimitError or *EntryError for an archive that is refused, and an error wrapping io.ErrUnexpectedEOF for
// one that is cut short. If ctx ends, it returns ctx's error. The files unpacked so far stay in destDir.
func Unpack(ctx context.Context, file, destDir string) error {
	return unpackWithin(ctx, file, destDir, limits{bytes: maxBytes, entries: maxEntries})
}

func unpackWithin(ctx context.Context, file, destDir string, lim limits) error {
	f, size, err := regular.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading: nothing can be lost
	ctx, work := progress.Begin(ctx, "unpacking "+filepath.Base(file), size)
	defer work.End()
	r, closeReader, err := decompress(work.Reader(io.LimitReader(f, size)))
	if err != nil {
		return fmt.Errorf("unpack %s: %w", file, err)
	}
	defer closeReader()
	if err := os.MkdirAll(destDir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(destDir)
	if err != nil {
		return err
	}
	if lim.disk == 0 {
		lim.disk = scratch.Budget(destDir)
	}
	u := &unpacker{ctx: ctx, root: root, lim: lim, buf: make([]byte, bufferSize),
		room: budget{dir: destDir, allowed: lim.disk, left: lim.disk}}
	err = u.all(r)
	if cerr := root.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", file, err)
	}
	return nil
}

// decompress returns the tar stream in f, for any compression, and a function that frees the decoder.
func decompress(f io.Reader) (io.Reader, func(), error) {
	br := bufio.NewReaderSize(f, bufferSize)
	head, err := br.Peek(len(magicZstd))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case len(head) == 0:
		return nil, nil, errors.New("the file is empty")
	case bytes.HasPrefix(head, magicGzip):
		zr, err := gzip.NewReader(br)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip header: %w", err)
		}
		return zr, func() { _ = zr.Close() }, nil
	case bytes.HasPrefix(head, magicZstd):
		zr, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(2))
		if err != nil {
			return nil, nil, fmt.Errorf("zstd header: %w", err)
		}
		return zr, zr.Close, nil
	}
	return br, func() {}, nil
}
