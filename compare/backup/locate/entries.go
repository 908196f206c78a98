package locate

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// zipEntries checks every file of a zip archive.
func (f *finder) zipEntries(of *Item, file *os.File) {
	z, err := zip.NewReader(file, of.stat.Size())
	if err != nil {
		f.brokenArchive(of, &packingError{"zip", err})
		return
	}
	for n, e := range z.File {
		if f.ctx.Err() != nil || f.full() {
			return
		}
		if e.FileInfo().IsDir() {
			continue
		}
		it := f.entryItem(of, isZip, n, e.Name, e.Modified)
		switch {
		case e.Flags&1 != 0:
			it.Err = &NoBackupError{it.Shown, "encrypted in the archive; unpack it first"}
			f.items = append(f.items, it)
		case !e.Mode().IsRegular():
			f.skip(it.Shown, "neither a file nor a folder")
		default:
			r, err := e.Open()
			if err != nil {
				f.entry(it, nil, &packingError{"zip", err})
				continue
			}
			f.entry(it, r, nil)
			_ = r.Close() // read as far as needed
		}
	}
}

// tarEntries checks every file of a tar archive.
func (f *finder) tarEntries(of *Item, r io.Reader) {
	t := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) || f.ctx.Err() != nil {
			return
		}
		if err != nil {
			f.brokenArchive(of, &packingError{fmt.Sprintf("tar, after %d entries", n), err})
			return
		}
		if f.full() {
			return
		}
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
			f.entry(f.entryItem(of, isTar, n, h.Name, h.ModTime), t, nil)
		case tar.TypeDir, tar.TypeXGlobalHeader:
		default:
			f.skip(filepath.Join(of.Shown, h.Name), "a link or device in an archive")
		}
	}
}

func (f *finder) full() bool {
	if f.count++; f.count > maxFiles {
		f.tooMany = true
	}
	return f.tooMany
}

// brokenArchive adds an archive whose list of files ends in damage. Later files are lost and may have been backups.
func (f *finder) brokenArchive(of *Item, err error) {
	it := *of
	it.Err = &BrokenError{of.Shown, err}
	f.items = append(f.items, &it)
}

// BrokenError says that an archive is damaged, so that not everything in it can be read.
type BrokenError struct {
	Where string
	Err   error
}

// Error returns the message on one line.
func (e *BrokenError) Error() string { return e.Where + ": the archive is damaged: " + e.Err.Error() }

// Unwrap returns the underlying error.
func (e *BrokenError) Unwrap() error { return e.Err }

// entry decides about one file of an archive.
func (f *finder) entry(it *Item, r io.Reader, err error) {
	if hasSuffix(it.Shown, unfinished) {
		f.skip(it.Shown, "an incomplete file")
		return
	}
	if inDataDir(it.Shown) {
		f.skip(it.Shown, "part of a data dir: use etcd-medic inspect or diagnose")
		return
	}
	if s, ok := chain.ParseName(it.Shown); ok {
		if !s.Full {
			f.skip(it.Shown, "a delta snapshot in an archive: unpack it to have its chain verified")
			return
		}
		it.suffix = s.Suffix
	}
	var head []byte
	if err == nil {
		var u *unwrapped
		if u, err = unwrap(r); err == nil {
			head, err = u.Peek(headLen)
			if errors.Is(err, io.EOF) || len(head) > 0 {
				err = nil
			}
			u.close()
		}
	}
	if err != nil {
		f.unreadableHead(it, err, false)
		return
	}
	is, name := recognise(head)
	f.decide(it, is, name, it.suffix != "")
}

// Opened is a backup as a file that can be read like a database.
type Opened struct {
	Path string
	// Packing is what is wrong with the compression or archive around it, nil if everything could be unpacked.
	Packing error
	scratch string
}

// Close removes scratch.
func (o *Opened) Close() error {
	if o.scratch == "" {
		return nil
	}
	return scratch.Remove(o.scratch)
}

// Open unpacks the backup into scratch if it is packed. It keeps what comes out before damage of the packing.
func (it *Item) Open(ctx context.Context, below string) (*Opened, error) {
	if it.Err != nil {
		return nil, it.Err
	}
	if it.object != nil {
		return it.openObject(ctx, below)
	}
	if !it.packed {
		return &Opened{Path: it.path}, nil
	}
	dir, err := scratch.Dir(below, "etcd-medic-")
	if err != nil {
		return nil, err
	}
	o := &Opened{Path: filepath.Join(dir, scratchName(it.Shown)), scratch: dir}
	err = it.stream(func(r io.Reader) error { return writeFile(ctx, o.Path, r) })
	if errors.Is(err, errPacking) {
		o.Packing, err = err, nil
		if _, serr := os.Stat(o.Path); serr != nil {
			err = writeFile(ctx, o.Path, emptyReader{})
		}
	}
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// scratchName returns the name of the unpacked file, which appears in messages about the backup.
func scratchName(shown string) string {
	name := filepath.Base(shown)
	if bare := bareName(name); bare != "" && len(bare) < len(name) {
		name = name[:len(bare)]
	}
	return name
}

type emptyReader struct{}

// Read implements io.Reader.
func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

// stream passes the content of a packed item to use.
func (it *Item) stream(use func(io.Reader) error) error {
	f, _, err := regular.Open(it.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading
	switch it.archive {
	case isZip:
		z, err := zip.NewReader(f, it.stat.Size())
		if err != nil || it.entry >= len(z.File) {
			return &packingError{"zip", errors.Join(err, io.ErrUnexpectedEOF)}
		}
		r, err := z.File[it.entry].Open()
		if err != nil {
			return &packingError{"zip", err}
		}
		defer func() { _ = r.Close() }() // opened for reading
		return it.content(&layerReader{"zip", r}, use)
	case isTar:
		u, err := unwrap(f)
		if err != nil {
			return err
		}
		defer u.close()
		t := tar.NewReader(u)
		for n := 0; n <= it.entry; n++ {
			if _, err := t.Next(); err != nil {
				return &packingError{"tar", err}
			}
		}
		return it.content(&layerReader{"tar", t}, use)
	}
	return it.content(f, use)
}

// content removes the compression of the file itself.
func (it *Item) content(r io.Reader, use func(io.Reader) error) error {
	if it.suffix == ".Z" || it.suffix == ".zlib" {
		inner, err := chain.Decompress(r, it.suffix)
		if err != nil {
			return &packingError{it.suffix, err}
		}
		return use(&layerReader{it.suffix, inner})
	}
	u, err := unwrap(r)
	if err != nil {
		return err
	}
	defer u.close()
	return use(u)
}

// Changed returns an error if the file on disk has changed since it was found.
func (it *Item) Changed() error {
	if it.stat == nil {
		return nil
	}
	st, err := os.Stat(it.path)
	if err != nil {
		return err
	}
	if st.Size() != it.stat.Size() || !st.ModTime().Equal(it.stat.ModTime()) {
		return fmt.Errorf("%s changed while it was read: is it still being written?", it.Shown)
	}
	return nil
}

const (
	// maxUnpacked bounds the unpacked size of one backup: eight times the quota that etcd suggests.
	maxUnpacked = 64 << 30
	copyBuffer  = 256 << 10
)

// writeFile writes a new file in scratch, up to a limit. Buffers of zeros become sparse extents, so that a small file
// of compressed zeros does not fill a disk.
func writeFile(ctx context.Context, path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:forbidigo // a new file in scratch
	if err != nil {
		return err
	}
	size, err := copySparse(ctx, f, r)
	return errors.Join(err, f.Truncate(size), f.Close())
}

// budget replaces scratch.Budget in tests.
var budget = scratch.Budget

func copySparse(ctx context.Context, f *os.File, r io.Reader) (size int64, err error) {
	buf := make([]byte, copyBuffer)
	dir := filepath.Dir(f.Name())
	allowed := budget(dir)
	left := allowed
	for {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		n, err := io.ReadFull(r, buf)
		if size+int64(n) > maxUnpacked {
			return size, &packingError{"size", fmt.Errorf("it unpacks to more than %s",
				plural.Size(int64(maxUnpacked)))}
		}
		if !zeros(buf[:n]) {
			if left -= int64(n); left < 0 {
				return size, &scratch.RoomError{Dir: dir, Allowed: allowed}
			}
			if _, werr := f.WriteAt(buf[:n], size); werr != nil {
				return size, werr
			}
		}
		size += int64(n)
		switch {
		case err == nil:
		case errors.Is(err, errPacking):
			return size, err
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return size, nil
		default:
			return size, err
		}
	}
}

func zeros(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
