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

// Ending is how the length of a backup fits its content and a trailer.
type Ending string

// Endings of a backup. A copied database may be longer than its content by whole pages.
const (
	EndsWhole        Ending = ""
	EndsCut          Ending = "cut"
	EndsInTrailer    Ending = "trailer-cut"
	EndsWithOthers   Ending = "appended"
	EndsInsideOfPage Ending = "inside-of-page"
)

// Ending returns how the file ends, the length of the content that the meta page states, and that of the content that
// is there, without a trailer.
func (db *DB) Ending() (end Ending, need, have int64) {
	page := int64(db.PageSize())
	need, have = int64(min(db.Meta().HighWater, 1<<40))*page, db.f.data
	switch written := db.Written(); {
	case have < need:
		return EndsCut, need, have
	case have == need, written != WrittenAsCopy && have%page == 0:
		return EndsWhole, need, have
	case have-need < trailerSize:
		return EndsInTrailer, need, have
	case db.MayBeCopy():
		return EndsWithOthers, need, have
	}
	return EndsInsideOfPage, need, have
}

// Written is how a database file came to be.
type Written string

// Ways to write a database file. The meta pages do not always show which.
const (
	WrittenUnknown  Written = ""
	WrittenAsCopy   Written = "copy"
	WrittenByCommit Written = "commit"
)

// Written reports whether bbolt wrote the file as a copy of one transaction (snapshot save, .snap.db, Tx.WriteTo), or
// a commit was the last to write it. A copy has its transaction ID on meta page 0, the one before on page 1, and is
// equal in the rest. A commit writes to page (ID mod 2), so only an odd ID on page 0 proves a copy: the last commit of
// a server that stops may change nothing, and leaves equal pages too. Only snapshot save appends a trailer.
func (db *DB) Written() Written {
	m := db.metas
	switch {
	case len(m) != 2 || !m[0].Valid || !m[1].Valid:
		return WrittenUnknown
	case !db.MayBeCopy():
		return WrittenByCommit
	case m[0].Txid%2 == 1 || db.f.size != db.f.data:
		return WrittenAsCopy
	}
	return WrittenUnknown
}

// MayBeCopy reports whether the meta pages are those of a copy of one transaction; see Written.
func (db *DB) MayBeCopy() bool {
	m := db.metas
	return len(m) == 2 && m[0].Valid && m[1].Valid && m[0].Root == m[1].Root && m[0].Txid == m[1].Txid+1 &&
		m[0].HighWater == m[1].HighWater && m[0].Freelist == m[1].Freelist
}
