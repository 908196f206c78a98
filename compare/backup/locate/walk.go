package locate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/internal/folder"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// maxDepth bounds folders in folders.
const maxDepth = 16

// maxFiles bounds the files of one argument. Tests replace it.
var maxFiles = 100_000

// link is a symbolic link to a file. Links are followed after all files, so that a file is not verified under the name
// of a link to it.
type link struct{ shown, target string }

// isDataDir reports whether a folder is a member's data dir, or the member folder in one.
func isDataDir(dir string) bool {
	if isDir(filepath.Join(dir, "member", "snap")) || isDir(filepath.Join(dir, "member", "wal")) {
		return true
	}
	if isDir(filepath.Join(dir, "wal")) && isDir(filepath.Join(dir, "snap")) {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "snap", "db"))
	if err == nil {
		return true
	}
	segments, err := folder.Match(filepath.Join(dir, "wal"), "*.wal")
	return err == nil && len(segments) > 0
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

// walk searches one folder. real is its path without links.
func (f *finder) walk(dir, shown string, depth int) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		f.items = append(f.items, f.failed(shown, err))
		return
	}
	if f.dirs[real] {
		f.skip(shown, "this folder was already searched")
		return
	}
	f.dirs[real] = true
	if depth > maxDepth {
		f.items = append(f.items, f.failed(shown, fmt.Errorf("%s: more than %d folders deep; name a folder below it",
			shown, maxDepth)))
		return
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		if filepath.Base(real) == "lost+found" {
			f.skip(shown, "a folder of the file system")
			return
		}
		f.items = append(f.items, f.failed(shown, err))
	}
	for _, e := range entries {
		if f.ctx.Err() != nil {
			return
		}
		f.one(filepath.Join(real, e.Name()), filepath.Join(shown, e.Name()), e.Type(), depth)
	}
}

// one checks one entry of a folder.
func (f *finder) one(path, shown string, mode fs.FileMode, depth int) {
	if f.count++; f.count > maxFiles {
		f.tooMany = true
		return
	}
	if mode&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			f.skip(shown, "a dangling link: "+reason(err))
			return
		}
		st, err := os.Stat(target)
		if err != nil {
			f.skip(shown, "a dangling link: "+reason(err))
			return
		}
		if !st.IsDir() {
			f.links = append(f.links, link{shown, target})
			return
		}
		path, mode = target, fs.ModeDir
	}
	switch {
	case mode.IsDir() && isDataDir(path):
		f.skip(shown, "a data dir: use etcd-medic inspect or diagnose")
	case mode.IsDir():
		f.walk(path, shown, depth+1)
	case !mode.IsRegular():
		f.skip(shown, "neither a file nor a folder")
	case f.elsewhere(shown):
	default:
		f.file(path, shown, false)
	}
}

func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

func (f *finder) followLinks() {
	for _, l := range f.links {
		abs, err := filepath.Abs(l.target)
		if err != nil {
			abs = l.target
		}
		if at, ok := f.files[abs]; ok {
			f.skip(l.shown, "a link to "+at)
			continue
		}
		st, err := os.Stat(abs)
		if err != nil || !st.Mode().IsRegular() {
			f.skip(l.shown, "a link to neither a file nor a folder")
			continue
		}
		if f.elsewhere(l.shown) {
			continue
		}
		f.file(abs, l.shown, false)
	}
}

// file checks one file. named is true if the user named it: then it is meant to be a backup, whatever it contains.
func (f *finder) file(path, shown string, named bool) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	f.files[path] = shown
	it := &Item{Given: f.given.Where, Shown: shown, name: f.given.Name, path: path, FromFolder: !named,
		Series: seriesOf(shown)}
	st, err := os.Stat(path)
	if err != nil {
		it.Err = err
		f.items = append(f.items, it)
		return
	}
	it.stat, it.Modified = st, st.ModTime()
	if s, ok := chain.ParseName(path); ok && !named {
		if f.snapshots == nil {
			f.snapshots = map[string][]chain.Snapshot{}
		}
		dir := filepath.Dir(shown)
		f.snapshots[dir] = append(f.snapshots[dir], s)
		if s.Full {
			f.items = append(f.items, it)
		}
		return
	}
	if s, ok := chain.ParseName(path); ok && !s.Full {
		it.Err = &NoBackupError{shown, "a delta snapshot alone; name the folder that holds its full snapshot"}
		f.items = append(f.items, it)
		return
	}
	if !named && hasSuffix(path, unfinished) {
		f.skip(shown, "an incomplete file, perhaps still being written")
		return
	}
	f.content(it, named)
}

// content decides by the content of the file.
func (f *finder) content(it *Item, named bool) {
	file, _, err := regular.Open(it.path)
	if err != nil {
		it.Err = err
		f.items = append(f.items, it)
		return
	}
	defer func() { _ = file.Close() }() // opened for reading
	if s, ok := chain.ParseName(it.path); ok && named && s.Suffix != "" {
		it.suffix, it.packed = s.Suffix, true
		f.items = append(f.items, it)
		return
	}
	u, err := unwrap(file)
	if err != nil {
		it.packed = true
		f.unreadableHead(it, err, named)
		return
	}
	defer u.close()
	it.packed = len(u.layers) > 0
	head, err := u.Peek(headLen)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		f.unreadableHead(it, err, named)
		return
	}
	is, name := recognise(head)
	switch is {
	case isZip:
		if it.packed {
			f.decide(it, isOther, "", named)
			return
		}
		f.zipEntries(it, file)
	case isTar:
		f.tarEntries(it, u)
	default:
		f.decide(it, is, name, named)
	}
}

// unreadableHead handles a file whose start cannot be unpacked: damaged packing if it is named like a backup, otherwise
// skipped.
func (f *finder) unreadableHead(it *Item, err error, named bool) {
	if !errors.Is(err, errPacking) {
		it.Err = err
		f.items = append(f.items, it)
		return
	}
	f.decide(it, isOther, "", named)
}

// decide accepts a file as a backup, keeps it for later, or skips it.
func (f *finder) decide(it *Item, is what, foreignName string, named bool) {
	switch {
	case is == isEncrypted || is == isUnsupported:
		if named || isNamedBackup(it.Shown, isOther) {
			it.Err = &NoBackupError{it.Shown, is.why(foreignName) + "; unpack it first"}
			f.items = append(f.items, it)
			return
		}
		f.skip(it.Shown, is.why(foreignName))
	case is == isOurs && named:
		it.Err = &NoBackupError{it.Shown, "it is " + is.why(foreignName)}
		f.items = append(f.items, it)
	case is == isOurs:
		f.skip(it.Shown, is.why(foreignName))
	case named || is == isDatabase || isNamedBackup(it.Shown, is):
		f.items = append(f.items, it)
	default:
		f.candidates = append(f.candidates, candidate{it, is, is.why(foreignName)})
	}
}

// entryItem returns the item of a file in an archive.
func (f *finder) entryItem(of *Item, kind what, n int, name string, modified time.Time) *Item {
	shown := filepath.Join(of.Shown, filepath.FromSlash(strings.TrimPrefix(name, "./")))
	it := &Item{Given: of.Given, Shown: shown, name: of.name, path: of.path, FromFolder: true, Series: seriesOf(shown),
		entry: n, archive: kind, packed: true,
		stat: of.stat, Modified: modified}
	if modified.IsZero() || modified.Year() < 1990 {
		it.Modified = of.Modified
	}
	return it
}

// inDataDir reports, by the name of an entry, whether it is part of a data dir.
func inDataDir(name string) bool {
	dir, file := filepath.Split(filepath.ToSlash(name))
	parent := filepath.Base(dir)
	return parent == "snap" && (file == "db" || strings.HasSuffix(file, ".snap") ||
		strings.HasSuffix(file, ".snap.db")) || parent == "wal" && strings.HasSuffix(file, ".wal")
}
