package datadir

import (
	"context"
	"os"
	"path/filepath"
)

// Building is a new path under construction at Path, which ends in .partial. Everything below is new; what is written
// with its methods is synced.
type Building struct {
	// Path is the folder to write below.
	Path string
	p    *partialDir
}

// Begin starts a new path. ErrExists is wrapped when it is there already.
func Begin(final string) (*Building, error) {
	p, err := newPartialDir(final)
	if err != nil {
		return nil, err
	}
	return &Building{Path: p.path, p: p}, nil
}

// Mkdir makes a folder below Path with its parents.
func (b *Building) Mkdir(path string) error { return os.MkdirAll(path, 0o700) }

// Write makes a new file.
func (b *Building) Write(path string, content []byte) error { return writeFile(path, bytesTo(content)) }

// Copy copies a file as it is, trailer and all, to a new file, and makes the folder it lies in.
func (b *Building) Copy(ctx context.Context, dst, src string) error {
	if err := b.Mkdir(filepath.Dir(dst)); err != nil {
		return err
	}
	return copyAll(ctx, dst, src)
}

// CopyDB is CopyDB to a file below Path.
func (b *Building) CopyDB(ctx context.Context, dst, src string, edits ...Edit) error {
	if err := b.Mkdir(filepath.Dir(dst)); err != nil {
		return err
	}
	return copyDB(ctx, dst, src, nil, edits)
}

// Size is the number of bytes of all files so far.
func (b *Building) Size() (int64, error) { return treeSize(b.Path) }

// Commit gives the folder its name.
func (b *Building) Commit() error {
	if err := syncTree(b.Path); err != nil {
		return err
	}
	return b.p.commit()
}

// CommitFile gives one file of the folder the name; the rest of the folder goes.
func (b *Building) CommitFile(name string) error { return b.p.commitFile(name) }

// Abandon removes what was not committed.
func (b *Building) Abandon() { b.p.abandon() }

func syncTree(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := syncTree(filepath.Join(root, e.Name())); err != nil {
				return err
			}
		}
	}
	return syncDirs(root)
}
