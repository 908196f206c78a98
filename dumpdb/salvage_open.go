package dumpdb

import (
	"context"
	"errors"
)

// OpenSalvage is Open, but also opens a file without a valid meta page. Metas, Check, Page, Pages and SalvageRevisions
// then rely on the page headers alone, and every bucket is reported as damaged.
func OpenSalvage(ctx context.Context, path string) (*DB, error) {
	db, err := OpenContext(ctx, path)
	if err == nil || !errors.Is(err, ErrNoMeta) {
		return db, err
	}
	f, ferr := openFile(ctx, path)
	if ferr != nil {
		return nil, ferr
	}
	return newSalvage(f, err)
}

func newSalvage(f *file, cause error) (*DB, error) {
	var dmg *DamageError
	if !errors.As(cause, &dmg) {
		return nil, cause
	}
	size := guessPageSize(f)
	db := &DB{f: f, owner: true, metas: readMetas(f), pageSize: size, rootDamage: []*DamageError{dmg}}
	db.meta = Meta{PageSize: uint32(size), Freelist: noFreelist, HighWater: db.filePages()}
	db.rootUsed = newBitmap(db.filePages())
	return db, nil
}

// guessPageSize returns the size at which most of the first pages have their own id.
func guessPageSize(f *file) int {
	best, most := 4096, 0
	head := make([]byte, headerSize)
	for size := int64(minPageSize); size <= maxPageSize; size <<= 1 {
		n := 0
		for id := int64(2); id < 66; id++ {
			if _, err := f.read(head, id*size); err != nil {
				break
			}
			if p := parseHeader(head); p.id == uint64(id) && p.flags != 0 {
				n++
			}
		}
		if n > most {
			best, most = int(size), n
		}
	}
	return best
}
