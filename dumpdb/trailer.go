package dumpdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Trailer is the sha256 that snapshot save appends. State is match, mismatch or absent; the sums are in hex.
type Trailer struct {
	State              string
	Expected, Computed string
}

// Trailer checks the sha256 trailer of a backup. A file has one if its size modulo 512 is 32.
func (db *DB) Trailer() (Trailer, error) {
	f := db.f
	if f.size == f.data {
		return Trailer{State: "absent"}, nil
	}
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, io.NewSectionReader(ended{f}, 0, f.data), make([]byte, readAhead))
	if err == nil && n < f.data {
		err = errShort
	}
	if err != nil {
		return Trailer{}, err
	}
	return db.TrailerOf(hex.EncodeToString(sum.Sum(nil)))
}

// TrailerOf is Trailer, given the sha256 in hex of the file without its last 32 bytes.
func (db *DB) TrailerOf(computed string) (Trailer, error) { return db.f.trailer(computed) }

// ReadTrailer is TrailerOf for a file that does not open as a database; computed may be "" if there is no trailer.
func ReadTrailer(path, computed string) (Trailer, error) {
	f, err := openFile(context.Background(), path)
	if err != nil {
		return Trailer{}, err
	}
	defer f.closer.Close()
	return f.trailer(computed)
}

func (f *file) trailer(computed string) (Trailer, error) {
	if f.size == f.data {
		return Trailer{State: "absent"}, nil
	}
	want := make([]byte, trailerSize)
	if n, err := f.r.ReadAt(want, f.data); n < len(want) {
		return Trailer{}, err
	}
	t := Trailer{State: "match", Expected: hex.EncodeToString(want), Computed: computed}
	if t.Expected != t.Computed {
		t.State = "mismatch"
	}
	return t, nil
}

// SavedBySnapshot distinguishes a file that bbolt wrote as one transaction (snapshot save, .snap.db, Tx.WriteTo) from a
// copied db: both meta pages have the same root, and meta 0 is one transaction ahead. A commit always moves the root,
// so a live db never has this.
func (db *DB) SavedBySnapshot() bool {
	m := db.metas
	return len(m) == 2 && m[0].Valid && m[1].Valid && m[0].Root == m[1].Root && m[0].Txid == m[1].Txid+1
}
