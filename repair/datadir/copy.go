package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// trailerSize is the size of the sha256 at the end of a backup; a file has one if its size modulo 512 is 32.
const trailerSize = 32

// CopyDB copies the database at src (of a data dir, or a backup, without its trailer) to the new file dst and applies
// the edits to the copy in one transaction. Without edits the bytes are copied unchanged, damaged or not. With edits, a
// damaged source is refused with a *DamagedError, since bbolt crashes on it.
func CopyDB(ctx context.Context, dst, src string, edits ...Edit) error {
	return newFile(dst, func(partial string) error { return copyDB(ctx, partial, src, nil, edits) })
}

// DamagedError says why a database cannot be edited: bbolt crashes on damaged pages. A rebuild from its readable pages
// can be edited.
type DamagedError struct {
	File   string
	Damage []*dumpdb.DamageError
}

// Error returns the first damaged place and the number of all.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged in %s, first: %v; rebuild it from its readable pages first", e.File,
		plural.Of(len(e.Damage), "place", "places"), e.Damage[0])
}

// copyDB creates path, which is not visible yet, and syncs it.
func copyDB(ctx context.Context, path, src string, moved func(int64), edits []Edit) error {
	if len(edits) > 0 {
		if err := sound(ctx, src); err != nil {
			return err
		}
	}
	if err := copyFile(ctx, path, src, moved); err != nil {
		return err
	}
	if len(edits) == 0 {
		return nil
	}
	return EditNew(path, edits...)
}

// sound walks the page graph and refuses damage on which bbolt crashes.
func sound(ctx context.Context, src string) error {
	db, err := dumpdb.Open(src)
	var bad *dumpdb.DamageError
	switch {
	case errors.As(err, &bad):
		return &DamagedError{src, []*dumpdb.DamageError{bad}}
	case err != nil:
		return err
	}
	defer func() { _ = db.Close() }() // only read
	r, err := db.Check(ctx)
	if err != nil {
		return err
	}
	// bbolt does not read the page header of a meta page, and writes it again.
	damage := slices.DeleteFunc(r.Damage,
		func(d *dumpdb.DamageError) bool { return d.Kind == dumpdb.DamageMetaHeader })
	if len(damage) > 0 {
		return &DamagedError{src, damage}
	}
	return nil
}

// EditNew applies the edits, in one transaction, to a database created by this run: a copy, or one built from scratch.
// Never call it on a source.
func EditNew(path string, edits ...Edit) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true,
		FreelistType: bolt.FreelistMapType})
	if err != nil {
		return fmt.Errorf("opening the copy: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, edit := range edits {
			if err := edit(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = db.Sync()
	}
	return errors.Join(err, db.Close())
}

// chunk is how many bytes are copied between two checks of the context.
const chunk = 64 << 20

// copyFile copies a database without its trailer. The kernel copies (copy_file_range, a reflink if the file system
// supports it).
func copyFile(ctx context.Context, dst, src string, moved func(int64)) error {
	in, size, err := openDB(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	return copyBytes(ctx, dst, in, size, moved)
}

// copyAll copies any file completely.
func copyAll(ctx context.Context, dst, src string) error {
	in, size, err := openRegular(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	return copyBytes(ctx, dst, in, size, nil)
}

func copyBytes(ctx context.Context, dst string, in *os.File, size int64, moved func(int64)) (err error) {
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, work := progress.Begin(ctx, "copying "+filepath.Base(in.Name()), size)
	defer work.End()
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(out, in, min(left, chunk))
		left -= n
		work.Add(int(n))
		if moved != nil {
			moved(n)
		}
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s became %s shorter while it was copied", in.Name(), plural.Size(left))
		}
		if err != nil {
			return fmt.Errorf("copying %s: %w", in.Name(), err)
		}
	}
	return out.Sync()
}

// openDB opens a database read-only and returns its size without the trailer.
func openDB(src string) (*os.File, int64, error) {
	f, size, err := openRegular(src)
	if err == nil && size%512 == trailerSize {
		size -= trailerSize
	}
	return f, size, err
}

func openRegular(src string) (*os.File, int64, error) {
	return regular.Open(src)
}
