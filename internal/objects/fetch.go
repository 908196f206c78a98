package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// maxFetched bounds the number of objects that Fetch copies from one address.
const maxFetched = 100_000

// Fetch copies the objects of an address into a folder and returns the path of the copy: a file for one object, a
// folder with the same names for all objects below the address. room is the number of bytes that may be written; a
// negative room means no bound.
func Fetch(ctx context.Context, where, dir string, room int64) (path string, err error) {
	s, err := Open(ctx, where)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	alone := ""
	total := int64(0)
	more, err := s.List(ctx, maxFetched, func(o Object) error {
		if total += o.Size; room >= 0 && total > room {
			return fmt.Errorf("at least %s; the scratch folder has room for only %s", plural.Size(total),
				plural.Size(room))
		}
		to, err := below(dir, o.Name)
		if err != nil {
			return err
		}
		if o.URL == s.url(s.key) {
			alone = to
		}
		return s.copy(ctx, o, to)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", Shown(where), err)
	case more:
		return "", fmt.Errorf("%s: more than %d objects", Shown(where), maxFetched)
	case alone != "":
		return alone, nil
	}
	return dir, nil
}

// below returns the path of a name in a folder. Whoever writes to the bucket chooses the keys, so a key that points
// outside the folder is refused.
func below(dir, name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("the key %q is not a path below its prefix", name)
	}
	return filepath.Join(dir, filepath.FromSlash(name)), nil
}

// Copy writes an object to a new file and keeps the object's time.
func (s *Store) Copy(ctx context.Context, o Object, path string) error { return s.copy(ctx, o, path) }

func (s *Store) copy(ctx context.Context, o Object, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { //nolint:forbidigo // a new folder in scratch
		return err
	}
	r, err := s.Read(ctx, o, -1)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()                                      // read to its end
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:forbidigo // a new file in scratch
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, o.Size+1))
	if err == nil && n != o.Size {
		err = fmt.Errorf("%s: received %d bytes instead of %d: the object changed meanwhile", Shown(o.URL), n, o.Size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Chtimes(path, o.Modified, o.Modified) //nolint:forbidigo // a new file in scratch
}
