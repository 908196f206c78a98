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

// WriteSet creates the folder dst with one data dir per member. All have the same database: the one at src with the
// edits. They get their names together, when all are complete and synced. moved, if set, is called with the bytes
// copied and their total. ready, if set, is asked before the names are given: an error leaves nothing.
func WriteSet(ctx context.Context, dst string, set []NamedDir, src string, edits []Edit,
	moved func(done, total int64), ready func(context.Context) error) (Result, error) {
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
		// The databases are equal, so the edited one is copied.
		src, edits = filepath.Join(root, "member", "snap", "db"), nil
	}
	if ready != nil {
		if err := ready(ctx); err != nil {
			return Result{}, err
		}
	}
	return res, p.commit()
}
