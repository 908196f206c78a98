package dumpdb

import "io"

// NewReader opens size bytes of r as Open does a file. Close does not close r.
func NewReader(r io.ReaderAt, size int64) (*DB, error) { return newDB(newFile(r, nil, size)) }
