package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// Outside refuses a new path inside a source, through symlinks too: nothing is ever written there. A source that is
// part of a data dir (its db, its WAL) protects the whole data dir. It also refuses a source in the place where the new
// path is built, since leftovers of an interrupted run are removed there.
func Outside(out string, sources ...evidence.Spec) error {
	if out == "" {
		return nil
	}
	above, err := ancestors(out)
	if err != nil {
		return err
	}
	building, err := os.Stat(partialOf(out))
	if err != nil {
		building = nil
	}
	for _, s := range sources {
		for _, root := range protected(s) {
			if slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, root.info) }) {
				return refusef("%s is inside the source %s, to which nothing is written; name a path outside of "+
					"%s", out,
					s.Where, root.path)
			}
		}
		if building == nil || strings.Contains(s.Where, "://") {
			continue
		}
		in, err := ancestors(s.Where)
		if err == nil && slices.ContainsFunc(in, func(a fs.FileInfo) bool { return os.SameFile(a, building) }) {
			return refusef("the source %s is inside %s, where the result is built; move it, or name another path",
				s.Where, partialOf(out))
		}
	}
	return nil
}

// ancestors returns the real path and all existing folders above it.
func ancestors(path string) (out []fs.FileInfo, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	for at := abs; ; at = filepath.Dir(at) {
		target, err := filepath.EvalSymlinks(at)
		if errors.Is(err, syscall.ENOTDIR) { // the error has no path
			return nil, refusef("%s cannot be made: a part of that path is a file, not a folder; name another path",
				path)
		}
		if err == nil {
			for p := target; ; p = filepath.Dir(p) {
				if fi, err := os.Stat(p); err == nil {
					out = append(out, fi)
				}
				if p == filepath.Dir(p) {
					return out, nil
				}
			}
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return out, fmt.Errorf("%s: %w", at, err)
		}
	}
}

type place struct {
	path string
	info fs.FileInfo
}

// protected returns the folders of a source. A single file needs no protection: an existing path is refused anyway.
func protected(s evidence.Spec) (out []place) {
	if strings.Contains(s.Where, "://") {
		return nil
	}
	add := func(path string) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return
		}
		if fi, err := os.Stat(real); err == nil && fi.IsDir() {
			out = append(out, place{path, fi})
		}
	}
	for _, path := range []string{s.Where, s.WALDir} {
		if path == "" {
			continue
		}
		// Both the given path and the target of links may be parts of a data dir.
		add(whole(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			add(whole(real))
		}
	}
	for _, dir := range slices.Clone(out) {
		for _, part := range []string{"member", "member/wal", "member/snap", "wal", "snap"} {
			add(filepath.Join(dir.path, part))
		}
	}
	return out
}

// whole returns the data dir that contains a path, or the path itself.
func whole(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	at := abs
	if b := filepath.Base(at); b == "db" || strings.HasSuffix(b, ".snap") || strings.HasSuffix(b, ".snap.db") ||
		strings.HasSuffix(b, ".wal") {
		at = filepath.Dir(at)
	}
	if b := filepath.Base(at); b == "wal" || b == "snap" {
		at = filepath.Dir(at)
	}
	if filepath.Base(at) == "member" {
		return filepath.Dir(at)
	}
	return abs
}
