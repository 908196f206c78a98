package dumpdb

// RecordReader reads records of bucket key again at places where they were met, for readers that keep places instead of
// values. It belongs to one goroutine.
type RecordReader struct{ rd recordReader }

// RecordReader returns a reader of records by place. Places in order of the file are read fastest.
func (db *DB) RecordReader() *RecordReader {
	return &RecordReader{recordReader{db: db, r: db.reader()}}
}

// At returns the record at a place that an iterator over bucket key of the same view told. It is valid until the next
// call. The error is a *DamageError when the page no longer reads as it did.
func (r *RecordReader) At(p Place) (Revision, error) { return r.rd.at(p) }
