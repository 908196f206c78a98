package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/shell"
)

const partialMark = ".etcd-medic-partial"

// ErrExists is wrapped by the error of every call whose new path is already there: nothing is ever written over.
var ErrExists = errors.New("already exists; results only go to new paths")

// partialDir is a dir under construction at final.partial. While it is built, its mark is locked.
type partialDir struct {
	final, path string
	mark        *os.File
	done        bool
}

// partialOf is where a new path is built.
func partialOf(final string) string { return filepath.Clean(final) + ".partial" }

// newPartialDir makes final.partial. One left by a run that was killed carries a mark that nobody holds and is
// replaced; one that another run holds, and anything else, is in the way.
func newPartialDir(final string) (*partialDir, error) {
	final = filepath.Clean(final)
	if err := absent(final); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return nil, err
	}
	p := &partialDir{final: final, path: partialOf(final)}
	err := os.Mkdir(p.path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		var old *os.File
		if old, err = takeLeftOver(p); err != nil {
			return nil, err
		}
		// The old mark stays locked until the new one is: of two runs that find the same left-over one goes on.
		defer unlock(old)
		err = os.Mkdir(p.path, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, p.busy()
	}
	if err != nil {
		return nil, err
	}
	return p, p.hold()
}

// hold makes the mark and locks it.
func (p *partialDir) hold() error {
	f, err := os.OpenFile(filepath.Join(p.path, partialMark), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return p.busy() // another run took the folder for a left-over in this very moment
	}
	if err != nil {
		return errors.Join(err, os.Remove(p.path))
	}
	held, err := tryLock(f)
	if held {
		_ = f.Close()
		return p.busy()
	}
	if err == nil {
		_, err = f.WriteString("etcd-medic writes here; may be deleted when no run is under way\n")
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.RemoveAll(p.path))
	}
	p.mark = f
	return nil
}

func (p *partialDir) busy() error {
	return refusef("another etcd-medic is writing %s (it holds %s); wait until it ends, or name another path", p.final,
		p.path)
}

// takeLeftOver removes what an interrupted run left at p.path, and returns its mark, which stays locked; nil when there
// was none yet.
func takeLeftOver(p *partialDir) (*os.File, error) {
	foreign := refusef("%s is in the way: etcd-medic builds %s there, and an interrupted run did not leave it (or "+
		"was an older release's). "+
		"Look at it, and if nobody needs it: rm -r %s", p.path, p.final, shell.Quote(shell.Operand(p.path)))
	if fi, err := os.Lstat(p.path); err != nil || !fi.IsDir() {
		return nil, errors.Join(foreign, ignoreAbsent(err))
	}
	name := filepath.Join(p.path, partialMark)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		// A run that is killed between two system calls leaves an empty folder.
		if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, foreign
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	held, err := tryLock(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	mine, err1 := f.Stat()
	now, err2 := os.Lstat(name)
	if held || err1 != nil || err2 != nil || !os.SameFile(mine, now) {
		_ = f.Close()
		return nil, p.busy()
	}
	if err := os.RemoveAll(p.path); err != nil {
		unlock(f)
		return nil, err
	}
	return f, nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
	unlock(p.mark)
	return syncDirs(p.final, filepath.Dir(p.final))
}

// abandon removes what was not committed; the error that led here is the one to tell.
func (p *partialDir) abandon() {
	if !p.done {
		p.done = true
		_ = os.RemoveAll(p.path)
		unlock(p.mark)
	}
}

// newFile lets write make a file in path.partial and then gives it its name.
func newFile(path string, write func(file string) error) error {
	p, err := newPartialDir(path)
	if err != nil {
		return err
	}
	defer p.abandon()
	file := filepath.Join(p.path, "file")
	if err := write(file); err != nil {
		return err
	}
	return p.commitFile("file")
}

// commitFile gives one file of the dir the final name; the rest of the dir goes.
func (p *partialDir) commitFile(name string) error {
	if err := absent(p.final); err != nil {
		return err
	}
	if err := install(filepath.Join(p.path, name), p.final); err != nil {
		return err
	}
	p.abandon()
	return syncDirs(filepath.Dir(p.final))
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
