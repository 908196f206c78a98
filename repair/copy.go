package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// copyMember makes a data dir of a source's parts in dst, which must not exist: member/wal and member/snap, wherever the source
// keeps its WAL. The source is opened for reading only.
func copyMember(ctx context.Context, m *evidence.Member, dst string) error {
	parts := m.Source.Parts()
	for _, p := range [][2]string{{parts.WAL, "wal"}, {parts.Snap, "snap"}} {
		if p[0] == "" {
			continue
		}
		if err := copyFolder(ctx, p[0], filepath.Join(dst, "member", p[1])); err != nil {
			return fmt.Errorf("copying %s: %w", m.Label(), err)
		}
	}
	return nil
}

func copyFolder(ctx context.Context, src, dst string) error {
	if err := os.MkdirAll(dst, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// Left-overs of a server that was ended in the middle are no part of its state.
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if err := copyFile(ctx, filepath.Join(src, e.Name()), filepath.Join(dst, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copyChunk is how much is copied between two looks at the context; pieces of zeros of that size become holes.
const copyChunk = 1 << 20

// copyFile copies a file. WAL segments end in preallocated zeros, which become holes; for others the kernel copies.
func copyFile(ctx context.Context, src, dst string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	st, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if strings.HasSuffix(src, ".wal") {
		return copySparse(ctx, out, in, st.Size())
	}
	for left := st.Size(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(out, in, min(left, 64*copyChunk))
		if left -= n; err != nil {
			return err
		}
	}
	return nil
}

func copySparse(ctx context.Context, out, in *os.File, size int64) error {
	buf, zero := make([]byte, copyChunk), make([]byte, copyChunk)
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
		if n > 0 && !bytes.Equal(buf[:n], zero[:n]) {
			if _, err := out.WriteAt(buf[:n], off); err != nil {
				return err
			}
		}
		if off += int64(n); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
	}
	return out.Truncate(size)
}

// syncTree flushes every file and folder below dir, for data dirs that servers wrote without fsync.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// enough refuses when dir's file system has less room than need bytes.
func enough(dir string, need int64, roomOf func(string) (int64, bool)) error {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
	}
	free, ok := roomOf(dir)
	if ok && free < need {
		return refusedf("free some, or name another place with --work or -o", "%d MiB are needed below %s, %d MiB are free", need>>20, dir, free>>20)
	}
	return nil
}
