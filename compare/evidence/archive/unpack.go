package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Owner permissions that are always kept, so that the user can read and remove scratch.
const (
	ownerFile fs.FileMode = 0o400
	ownerDir  fs.FileMode = 0o700
)

// unpacker is the state of one Unpack. All writes go through root, which the operating system keeps inside destDir.
type unpacker struct {
	ctx     context.Context
	root    *os.Root
	lim     limits
	bytes   int64
	entries int64
	buf     []byte
	room    budget
	dirs    []*tar.Header // their modes and times are set last, since filling a directory changes its time
}

// all unpacks every entry of the tar stream r.
func (u *unpacker) all(r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			if u.entries == 0 {
				return errors.New("the archive has no entry")
			}
			if err := drain(r); err != nil {
				return err
			}
			return u.finishDirs()
		}
		if err != nil {
			return fmt.Errorf("after %d entries: %w", u.entries, cutShort(err))
		}
		if err := u.one(hdr, tr); err != nil {
			return err
		}
	}
}

// maxTrailer bounds the data after the end-of-archive mark: tar pads to its blocking factor, rarely more than 10 KiB.
const maxTrailer = 1 << 20

// drain reads the data after the end-of-archive mark, since gzip and zstd have their checksum after it.
func drain(r io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, maxTrailer+1))
	if err != nil {
		return fmt.Errorf("after the last entry: %w", cutShort(err))
	}
	if n > maxTrailer {
		return fmt.Errorf("more than %s follow the end-of-archive mark", plural.Size(maxTrailer))
	}
	return nil
}

// one unpacks one entry.
func (u *unpacker) one(hdr *tar.Header, tr *tar.Reader) error {
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil // comments and defaults for later entries, not a file
	}
	name, err := localName(hdr.Name)
	if err != nil {
		return err
	}
	if u.entries++; u.entries > u.lim.entries {
		return &LimitError{Name: hdr.Name, What: "entries", Want: u.entries, Limit: u.lim.entries}
	}
	if hdr.Typeflag != tar.TypeDir {
		if err := u.root.MkdirAll(filepath.Dir(name), ownerDir); err != nil {
			return err
		}
	}
	switch hdr.Typeflag {
	case tar.TypeDir:
		u.dirs = append(u.dirs, hdr)
		return u.root.MkdirAll(name, ownerDir)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return u.file(name, hdr, tr)
	case tar.TypeLink:
		return u.link(name, hdr)
	case tar.TypeSymlink:
		return &EntryError{Name: hdr.Name, Reason: fmt.Sprintf(
			"a symbolic link to %q; links are not followed: pack what it points at (tar --dereference)", hdr.Linkname)}
	}
	return &EntryError{Name: hdr.Name, Reason: fmt.Sprintf("type %q is neither a file nor a directory", hdr.Typeflag)}
}

// file writes one regular file.
func (u *unpacker) file(name string, hdr *tar.Header, tr *tar.Reader) error {
	if hdr.Size > u.lim.bytes-u.bytes {
		return &LimitError{Name: hdr.Name, What: "bytes", Want: satAdd(u.bytes, hdr.Size), Limit: u.lim.bytes}
	}
	u.bytes += hdr.Size
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &EntryError{Name: hdr.Name, Reason: "this name was already unpacked or exists in the destination"}
	}
	if err != nil {
		return err
	}
	n, err := writeSparse(u.ctx, f, tr, u.buf, &u.room)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && n != hdr.Size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("entry %q: %s unpacked: %w", hdr.Name, plural.SizeOf(n, hdr.Size), cutShort(err))
	}
	return u.attributes(name, hdr, ownerFile)
}

// link creates a hard link to a regular file unpacked before.
func (u *unpacker) link(name string, hdr *tar.Header) error {
	target, err := localName(hdr.Linkname)
	if err != nil {
		return &EntryError{Name: hdr.Name, Reason: fmt.Sprintf("a hard link to %q, outside the archive", hdr.Linkname)}
	}
	st, err := u.root.Lstat(target)
	if err != nil || !st.Mode().IsRegular() {
		return &EntryError{Name: hdr.Name, Reason: fmt.Sprintf("a hard link to %q, which is not an earlier file of "+
			"the archive",
			hdr.Linkname)}
	}
	return u.root.Link(target, name)
}

// finishDirs sets modes and times of directories, the last entered first.
func (u *unpacker) finishDirs() error {
	for i := len(u.dirs) - 1; i >= 0; i-- {
		name, err := localName(u.dirs[i].Name)
		if err != nil {
			return err
		}
		if err := u.attributes(name, u.dirs[i], ownerDir); err != nil {
			return err
		}
	}
	return nil
}

// attributes sets permission bits and modification time.
func (u *unpacker) attributes(name string, hdr *tar.Header, always fs.FileMode) error {
	if err := u.root.Chmod(name, hdr.FileInfo().Mode().Perm()|always); err != nil {
		return err
	}
	if hdr.ModTime.IsZero() {
		return nil
	}
	return u.root.Chtimes(name, time.Time{}, hdr.ModTime)
}

// localName turns the name of an entry into a path below the destination.
func localName(name string) (string, error) {
	clean := filepath.FromSlash(path.Clean(name))
	if name == "" || !filepath.IsLocal(clean) {
		return "", &EntryError{Name: name, Reason: "the name points outside the destination"}
	}
	return clean, nil
}

// cutShort turns io.EOF in the middle of the data into io.ErrUnexpectedEOF.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// satAdd adds two non-negative counts without overflow.
func satAdd(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return 1<<63 - 1
}
