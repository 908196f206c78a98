package datadir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// NamedDir is one dir of a set.
type NamedDir struct {
	// Name is the folder below the set's own.
	Name string
	Dir  Dir
}

// WriteSet makes the folder dst with one data dir per member, all with the same database: the one at src with the
// edits. They appear together, when all are complete and on disk. moved, if set, is told how many of how many bytes are
// copied.
func WriteSet(ctx context.Context, dst string, set []NamedDir, src string, edits []Edit,
	moved func(done, total int64)) (Result, error) {
	fi, err := os.Stat(src)
	if err != nil {
		return Result{}, err
	}
	p, err := newPartialDir(dst)
	if err != nil {
		return Result{}, err
	}
	defer p.abandon()
	res := Result{Path: dst}
	var done int64
	total := fi.Size() * int64(len(set))
	progress := func(n int64) {
		done += n
		if moved != nil {
			moved(min(done, total), total)
		}
	}
	for _, m := range set {
		root := filepath.Join(p.path, m.Name)
		if err := mkdirs(root); err != nil {
			return Result{}, err
		}
		w, err := writeDir(ctx, root, m.Dir, func(ctx context.Context,
			path string) error {
			return copyDB(ctx, path, src, progress, edits)
		})
		if err == nil {
			err = syncDirs(root)
		}
		if err != nil {
			return Result{}, fmt.Errorf("writing the dir of %s: %w", m.Name, err)
		}
		w.Name = m.Name
		res.Dirs, res.Bytes = append(res.Dirs, w), res.Bytes+w.Bytes
		// The databases are equal: what was edited once is only copied.
		src, edits = filepath.Join(root, "member", "snap", "db"), nil
	}
	return res, p.commit()
}
