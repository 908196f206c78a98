package dumpdb

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Trailer is the sha256 that snapshot save appends: State match, mismatch or absent; sums in hex.
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
	want := make([]byte, trailerSize)
	if n, err := f.r.ReadAt(want, f.data); n < len(want) {
		return Trailer{}, err
	}
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, io.NewSectionReader(f.r, 0, f.data), make([]byte, readAhead))
	if err == nil && n < f.data {
		err = errShort
	}
	if err != nil {
		return Trailer{}, err
	}
	t := Trailer{State: "match", Expected: hex.EncodeToString(want), Computed: hex.EncodeToString(sum.Sum(nil))}
	if t.Expected != t.Computed {
		t.State = "mismatch"
	}
	return t, nil
}
