package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const partialMark = ".etcd-medic-partial"

// ErrExists is wrapped by the error of every call whose new path is already there: nothing is ever written over.
var ErrExists = errors.New("already exists; results only go to new paths")

// partialDir is a dir under construction at final.partial.
type partialDir struct {
	final, path string
	done        bool
}

// newPartialDir makes final.partial. One left by a run that was killed carries a mark and is replaced; anything else is in the way.
func newPartialDir(final string) (*partialDir, error) {
	final = filepath.Clean(final)
	if err := absent(final); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return nil, err
	}
	p := &partialDir{final: final, path: final + ".partial"}
	err := os.Mkdir(p.path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if err = removeMarked(p.path); err == nil {
			err = os.Mkdir(p.path, 0o700)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(p.path, partialMark), []byte("etcd-medic writes here; may be deleted when no run is under way\n"), 0o600); err != nil {
		return nil, errors.Join(err, os.Remove(p.path))
	}
	return p, nil
}

func absent(path string) error {
	_, err := os.Lstat(path)
	if err == nil {
		return fmt.Errorf("%s %w", path, ErrExists)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func removeMarked(path string) error {
	names, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(path, partialMark)); err != nil && len(names) > 0 {
		return fmt.Errorf("%s is in the way and was not left by an interrupted run; move it away", path)
	}
	return os.RemoveAll(path)
}

// commit syncs the dir and gives it its name.
func (p *partialDir) commit() error {
	if err := syncDirs(p.path); err != nil {
		return err
	}
	if err := absent(p.final); err != nil {
		return err
	}
	// Nothing slow may stand between these two: a kill there leaves a folder that no later run takes for its own.
	if err := os.Remove(filepath.Join(p.path, partialMark)); err != nil {
		return err
	}
	if err := os.Rename(p.path, p.final); err != nil {
		return err
	}
	p.done = true
	return syncDirs(p.final, filepath.Dir(p.final))
}

// abandon removes what was not committed; the error that led here is the one to tell.
func (p *partialDir) abandon() {
	if !p.done {
		_ = os.RemoveAll(p.path)
	}
}

// newFile lets write make path.partial and then gives it its name. A path.partial left by a killed run is unlinked, never written
// through.
func newFile(path string, write func(partial string) error) error {
	path = filepath.Clean(path)
	if err := absent(path); err != nil {
		return err
	}
	partial := path + ".partial"
	if fi, err := os.Lstat(partial); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is in the way; move it away", partial)
	}
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := write(partial); err != nil {
		_ = os.Remove(partial)
		return err
	}
	if err := install(partial, path); err != nil {
		_ = os.Remove(partial)
		return err
	}
	return syncDirs(filepath.Dir(path))
}

// install gives a file its name without ever replacing another: a link fails where a rename would not.
func install(partial, path string) error {
	err := os.Link(partial, path)
	if err == nil {
		return os.Remove(partial)
	}
	if exists := absent(path); exists != nil {
		return exists
	}
	return os.Rename(partial, path) // file systems without hard links
}

// writeFile makes a new file with the content that fill writes, and syncs it.
func writeFile(path string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func bytesTo(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(b))
		return err
	}
}

func logTo(d *Dir) func(io.Writer) error {
	return func(w io.Writer) error { return writeLog(w, d) }
}

func mkdirs(dirs ...string) error {
	for _, d := range dirs {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func syncDirs(dirs ...string) error {
	for _, d := range dirs {
		f, err := os.Open(d)
		if err != nil {
			return err
		}
		err = f.Sync()
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("syncing %s: %w", d, err)
		}
	}
	return nil
}

func treeSize(root string) (n int64, err error) {
	err = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == partialMark {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			n += fi.Size()
		}
		return err
	})
	return n, err
}
