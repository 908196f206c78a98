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

// ErrExists is wrapped by the error of every call whose new path already exists: nothing is ever overwritten.
var ErrExists = errors.New("already exists; results only go to new paths")

// partialDir is a dir under construction at final.partial. Meanwhile its mark file is locked.
type partialDir struct {
	final, path string
	mark        *os.File
	done        bool
}

// partialOf returns where a new path is built.
func partialOf(final string) string { return filepath.Clean(final) + ".partial" }

// unmarked are the permissions of a folder that has no mark yet. The sticky bit comes with the folder in one system
// call: it separates what a run left that was killed before it wrote the mark from an empty folder of somebody else.
const unmarked = 0o700 | fs.ModeSticky

// newPartialDir creates final.partial. It replaces one left by a killed run, which has an unlocked mark or is not
// marked yet. One that another run has locked, and anything else, is an error.
func newPartialDir(final string) (*partialDir, error) {
	final = filepath.Clean(final)
	if err := absent(final); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return nil, err
	}
	p := &partialDir{final: final, path: partialOf(final)}
	err := os.Mkdir(p.path, unmarked)
	if errors.Is(err, fs.ErrExist) {
		var old *os.File
		if old, err = takeLeftOver(p); err != nil {
			return nil, err
		}
		// The old mark stays locked until the new one is, so that of two runs that find the same leftover only one
		// continues.
		defer unlock(old)
		err = os.Mkdir(p.path, unmarked)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, p.busy()
	}
	if err != nil {
		return nil, err
	}
	return p, p.lockMark()
}

// lockMark creates the mark and locks it.
func (p *partialDir) lockMark() error {
	f, err := os.OpenFile(filepath.Join(p.path, partialMark), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return p.busy() // another run has just taken the folder
	}
	if err != nil {
		return errors.Join(err, os.Remove(p.path))
	}
	held, err := tryLock(f)
	if held || err == nil && !isAt(f, f.Name()) {
		unlock(f) // a run that took the unlocked mark for a left-over one may have removed it and ended
		return p.busy()
	}
	if err == nil {
		err = os.Chmod(p.path, 0o700)
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

// takeLeftOver removes the leftovers of an interrupted run at p.path. It returns its mark, still locked; nil if it had
// none yet.
func takeLeftOver(p *partialDir) (*os.File, error) {
	inTheWay := refusef("%s is in the way: etcd-medic builds %s there, and nothing shows that an interrupted run left "+
		"it. Check it, and if it is not needed: rm -r %s", p.path, p.final, shell.Quote(shell.Operand(p.path)))
	fi, err := os.Lstat(p.path)
	if err != nil || !fi.IsDir() {
		return nil, errors.Join(inTheWay, ignoreAbsent(err))
	}
	name := filepath.Join(p.path, partialMark)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, p.removeUnmarked(fi, inTheWay)
	}
	if err != nil {
		return nil, err
	}
	held, err := tryLock(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if held || !isAt(f, name) {
		unlock(f)
		return nil, p.busy()
	}
	err = removeMarked(p.path)
	if errors.Is(err, fs.ErrExist) {
		err = p.busy()
	}
	if err != nil {
		unlock(f)
		return nil, err
	}
	return f, nil
}

// removeUnmarked removes the empty folder of a run that was killed before it wrote its mark. Any other folder stays:
// then the error is inTheWay, or that another run is at work, if its mark is there by now or the folder is gone.
func (p *partialDir) removeUnmarked(was fs.FileInfo, inTheWay error) error {
	if was.Mode()&fs.ModeSticky != 0 {
		if err := ignoreAbsent(os.Remove(p.path)); err == nil {
			return nil
		}
	}
	_, gone := os.Lstat(p.path)
	if _, err := os.Lstat(filepath.Join(p.path, partialMark)); err == nil || errors.Is(gone, fs.ErrNotExist) {
		return p.busy()
	}
	return inTheWay
}

// removeMarked removes a left-over folder, its mark last: until then no other run takes the folder. If another one has
// then put its mark there, the error is an fs.ErrExist.
func removeMarked(path string) error {
	in, err := os.ReadDir(path)
	for _, f := range in {
		if f.Name() != partialMark {
			err = errors.Join(err, os.RemoveAll(filepath.Join(path, f.Name())))
		}
	}
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(path, partialMark)); err != nil {
		return err
	}
	return ignoreAbsent(os.Remove(path))
}

// isAt reports whether a path still names an open file.
func isAt(f *os.File, path string) bool {
	mine, err1 := f.Stat()
	now, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(mine, now)
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

// commit syncs the dir and renames it to its final name.
func (p *partialDir) commit() error {
	if err := syncDirs(p.path); err != nil {
		return err
	}
	if err := absent(p.final); err != nil {
		return err
	}
	// These two must follow each other quickly: a kill in between leaves a folder that no later run recognizes.
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

// abandon removes everything that is not committed. It ignores errors, since the caller returns the first one.
func (p *partialDir) abandon() {
	if !p.done {
		p.done = true
		_ = os.RemoveAll(p.path)
		unlock(p.mark)
	}
}

// newFile calls write for a file path.partial and then renames it.
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

// commitFile renames one file of the dir to the final name and removes the rest.
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

// install renames a file without ever replacing another one: a link fails where a rename would not.
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

// writeFile creates a new file, calls fill to write its content, and syncs it.
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
