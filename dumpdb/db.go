package dumpdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// DB is an open bbolt file, read through one of its meta pages. It is safe for concurrent readers.
type DB struct {
	f        *file
	owner    bool
	metas    []Meta
	meta     Meta // the meta page of this view
	pageSize int

	buckets    []bucket
	byName     map[string]int // positions in buckets; of equal names the first
	rootDamage []*DamageError
	rootUsed   bitmap // pages of the root tree

	maxKeys int // how many keys a pass keeps, for tests; 0 means maxLiveKeys
}

// Open opens a bbolt file read-only: a db of a data dir, a .snap.db or a backup. It fails if the file cannot be read or
// neither meta page is valid. The error is then a *DamageError: of kind DamageTruncated if the file is too short for a
// meta page, else of kind DamageMeta. Other damage is found while reading.
func Open(path string) (*DB, error) { return OpenContext(context.Background(), path) }

// OpenContext is Open of a file that can be read until ctx ends. Then every read fails with the error of ctx.
func OpenContext(ctx context.Context, path string) (*DB, error) {
	f, err := openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	db, err := newDB(f)
	if err != nil {
		f.closer.Close()
		return nil, err
	}
	return db, nil
}

// ErrNoMeta is wrapped by the error of Open if neither meta page is valid.
var ErrNoMeta = errors.New("neither meta page is valid")

func newDB(f *file) (*DB, error) {
	metas := readMetas(f)
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	used := pickMeta(metas)
	if f.data < headerSize+metaSize {
		d := &DamageError{Kind: DamageTruncated, Expected: "two meta pages", Observed: "an empty file", Err: ErrNoMeta}
		if f.size > 0 {
			d.Observed = "a file of " + plural.Size(f.size)
		}
		return nil, d
	}
	if used < 0 {
		return nil, &DamageError{Kind: DamageMeta, Expected: "one valid meta page",
			Observed: fmt.Sprintf("meta 0: %s; meta 1: %s", metas[0].Problem, metas[1].Problem), Err: ErrNoMeta}
	}
	metas[used].Used = true
	db, err := view(f, metas, used)
	if err != nil {
		return nil, err
	}
	db.owner = true
	return db, nil
}

// view returns the db as a meta page describes it. The error is that of the file's context.
func view(f *file, metas []Meta, n int) (*DB, error) {
	db := &DB{f: f, metas: metas, meta: metas[n], pageSize: int(metas[n].PageSize)}
	db.loadBuckets()
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	return db, nil
}

// OpenMeta returns the db as meta page n (0 or 1) describes it. The view reads the same file and ends when db is
// closed; closing the view does nothing.
func (db *DB) OpenMeta(n int) (*DB, error) {
	if n < 0 || n >= len(db.metas) {
		return nil, fmt.Errorf("there is no meta page %d", n)
	}
	if m := db.metas[n]; !m.Valid {
		return nil, &DamageError{Place: Place{m.Page, m.Offset}, Kind: DamageMeta, Expected: "a valid meta page",
			Observed: m.Problem}
	}
	return view(db.f, db.metas, n)
}

// PreviousView returns the db one transaction earlier, as the unused meta page describes it. Pages that were reused
// since then appear as damage.
func (db *DB) PreviousView() (*DB, error) { return db.OpenMeta(1 - pickMeta(db.metas)) }

// Close closes the file. Views of OpenMeta and PreviousView end with it.
func (db *DB) Close() error {
	if !db.owner || db.f.closer == nil {
		return nil
	}
	return db.f.closer.Close()
}

// Size returns the file size in bytes, including a sha256 trailer.
func (db *DB) Size() int64 { return db.f.size }

// PageSize returns the page size according to the meta page of this view.
func (db *DB) PageSize() int { return db.pageSize }

// Meta returns the meta page of this view.
func (db *DB) Meta() Meta { return db.meta }

// Metas returns both meta pages, valid or not.
func (db *DB) Metas() []Meta { return append([]Meta(nil), db.metas...) }

// filePages counts the pages in the file, the last one perhaps incomplete.
func (db *DB) filePages() uint64 {
	return uint64((db.f.data + int64(db.pageSize) - 1) / int64(db.pageSize))
}
