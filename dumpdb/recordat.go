package dumpdb

// RecordReader reads records of bucket key again by place, for readers that keep places instead of values. Use it from
// one goroutine only.
type RecordReader struct{ rd recordReader }

// RecordReader returns a reader of records by place. It is fastest with places in file order.
func (db *DB) RecordReader() *RecordReader {
	return &RecordReader{recordReader{db: db, r: db.reader()}}
}

// At returns the record at a place from an iterator over bucket key of the same view. The record is valid until the
// next call. The error is a *DamageError if the page has changed.
func (r *RecordReader) At(p Place) (Revision, error) { return r.rd.at(p) }
