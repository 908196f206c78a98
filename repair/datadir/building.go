package datadir

import (
	"context"
	"os"
	"path/filepath"
)

// TxRecords and TxBytes are where a transaction that writes a database ends: the number of records that a server
// commits at once at most, and a bound in bytes, since they are in memory until it ends.
const (
	TxRecords = 10000
	TxBytes   = 16 << 20
)

// Building is a new path under construction at Path, which ends in .partial. Its methods sync what they write.
type Building struct {
	// Path is the folder to write below.
	Path string
	p    *partialDir
}

// Begin starts a new path. If it already exists, the error wraps ErrExists.
func Begin(final string) (*Building, error) {
	p, err := newPartialDir(final)
	if err != nil {
		return nil, err
	}
	return &Building{Path: p.path, p: p}, nil
}

// Mkdir creates a folder below Path with its parents.
func (b *Building) Mkdir(path string) error { return os.MkdirAll(path, 0o700) }

// Write makes a new file.
func (b *Building) Write(path string, content []byte) error { return writeFile(path, bytesTo(content)) }

// Copy copies a file unchanged, including a trailer, to a new file, and creates its folder.
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

// Size returns the number of bytes of all files so far.
func (b *Building) Size() (int64, error) { return treeSize(b.Path) }

// Commit renames the folder to its final name.
func (b *Building) Commit() error {
	if err := syncTree(b.Path); err != nil {
		return err
	}
	return b.p.commit()
}

// CommitFile renames one file of the folder to the final name and removes the rest.
func (b *Building) CommitFile(name string) error { return b.p.commitFile(name) }

// Abandon removes everything that is not committed.
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
