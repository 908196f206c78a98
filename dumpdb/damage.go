package dumpdb

import (
	"bytes"
	"errors"
	"fmt"
)

// DamageKind names what is wrong with a page, bucket or row.
type DamageKind string

// The kinds of damage of a bbolt file.
const (
	DamageMeta       DamageKind = "bad-meta"         // a meta page is not valid
	DamageMetaHeader DamageKind = "meta-header"      // the page header of a valid meta page is wrong; see Meta
	DamageTruncated  DamageKind = "truncated"        // the file ends before its high-water mark
	DamagePage       DamageKind = "bad-page"         // page header, element table or order is wrong
	DamagePageID     DamageKind = "page-id"          // the page says it is another page
	DamageOutOfFile  DamageKind = "beyond-file"      // a reference points outside the file
	DamageCycle      DamageKind = "cycle"            // a page is its own ancestor
	DamageDoubleUse  DamageKind = "used-twice"       // a page is referenced twice, or used and free
	DamageFreelist   DamageKind = "bad-freelist"     // the stored freelist does not decode
	DamageKeyOrder   DamageKind = "key-order"        // keys are not ascending
	DamageBucket     DamageKind = "missing-bucket"   // a bucket that every db of this release has is missing
	DamageBuckets    DamageKind = "too-many-buckets" // more buckets than are examined; etcd has ten
	DamageReused     DamageKind = "reused-page"      // the page holds rows of another bucket
	DamageRow        DamageKind = "bad-row"          // key or value does not decode
	DamageEmpty      DamageKind = "empty-page"       // a leaf page below a branch page has no rows
	DamageUnreadable DamageKind = "unreadable"       // the file cannot be read, or is not a bbolt file
)

// DamageError describes one damaged place in a db. It is a fact about the data, not a failure of the program.
type DamageError struct {
	Place
	Kind   DamageKind
	Bucket string
	// FirstKey and LastKey bound the keys that may be lost, according to the parent page: from FirstKey up to but not
	// including LastKey. A nil FirstKey means from the start, a nil LastKey to the end of the bucket.
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

// Revisions returns which revisions of bucket key may be lost: from from up to but not including to. The zero revision
// stands for the start and the end of the bucket.
func (e *DamageError) Revisions() (from, to Rev) {
	return boundOf(e.FirstKey), boundOf(e.LastKey)
}

// boundOf decodes the key of a parent page. One that is not a revision bounds nothing.
func boundOf(key []byte) Rev {
	r, _, err := parseRevKey(key[:min(len(key), revKeySize)])
	if err != nil {
		return Rev{}
	}
	return r
}

// ErrCompacted and ErrFutureRev are the errors with which the server refuses a hash at a revision it does not have.
var (
	ErrCompacted = errors.New("the revision has been compacted")
	ErrFutureRev = errors.New("the revision is a future revision")
)

// only returns the span of one key.
func only(key []byte) span {
	k := append([]byte(nil), key...)
	return span{k, append(k[:len(k):len(k)], 0)}
}

// covers reports whether a key is in the span that may be lost.
func (e *DamageError) covers(key []byte) bool {
	return bytes.Compare(key, e.FirstKey) >= 0 && (e.LastKey == nil || bytes.Compare(key, e.LastKey) < 0)
}

// Damages is an error that lists everything wrong with the data read. errors.As finds its first [DamageError].
type Damages []*DamageError

// Error returns the number of damaged places and the first.
func (d Damages) Error() string {
	if len(d) == 1 {
		return d[0].Error()
	}
	return fmt.Sprintf("%d damaged places, first %s", len(d), d[0].Error())
}

// Unwrap returns each damaged place.
func (d Damages) Unwrap() []error {
	out := make([]error, len(d))
	for i := range d {
		out[i] = d[i]
	}
	return out
}

func damagesOrNil(d []*DamageError) error {
	if len(d) == 0 {
		return nil
	}
	return Damages(d)
}

// LostRevisions returns the first and the last main revision that may be lost in bucket key, from FirstKey and LastKey.
// 0 means that the span is open. ok is false if the span does not consist of revision keys.
func (e *DamageError) LostRevisions() (first, last int64, ok bool) {
	if e.Bucket != "key" || e.FirstKey == nil && e.LastKey == nil {
		return 0, 0, false
	}
	if e.FirstKey != nil {
		r, _, err := parseRevKey(e.FirstKey)
		if err != nil {
			return 0, 0, false
		}
		first = r.Main
	}
	if e.LastKey != nil {
		r, _, err := parseRevKey(e.LastKey[:min(len(e.LastKey), revKeySize)])
		if err != nil {
			return 0, 0, false
		}
		if last = r.Main; r.Sub == 0 && len(e.LastKey) == revKeySize {
			last-- // LastKey itself is not lost
		}
	}
	return first, last, true
}
