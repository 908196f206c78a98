package compare

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/release"
)

// Comparison is the document of compare: bucket by bucket at the common applied index, then the logs.
type Comparison struct {
	SchemaVersion int                `json:"schemaVersion"`
	Tool          Tool               `json:"tool"`
	Sources       []Source           `json:"sources"`
	Window        Window             `json:"window"`
	Buckets       []BucketComparison `json:"buckets"`
	Log           LogComparison      `json:"log"`
}

// Window is the state at which the sources were compared.
type Window struct {
	// AppliedIndex is the highest index every compared db has applied; 0 when not known.
	AppliedIndex uint64 `json:"appliedIndex"`
	// Revisions are the revision of each member at that index; they differ when a member dropped writes.
	Revisions map[string]int64 `json:"revisions"`
	// CompactRevision is the highest compact revision: older superseded records are left out everywhere.
	CompactRevision int64 `json:"compactRevision"`
	// LeftOut names members that could not take part, and why.
	LeftOut map[string]string `json:"leftOut,omitempty"`
	// Earlier names members whose database may have lost its last transaction, and why: then it shows the state of one
	// transaction earlier.
	Earlier map[string]string `json:"earlier,omitempty"`
	// Note says what limits the comparison.
	Note string `json:"note,omitempty"`
}

// BucketComparison is one bucket over all members. Equal is unknown when it could not be compared. Reason says why, or
// which members could not be compared in all rows while the others were.
type BucketComparison struct {
	Bucket string         `json:"bucket"`
	Equal  release.Answer `json:"equal"`
	Reason string         `json:"reason,omitempty"`
	Only   map[string]int `json:"only"`
	// Differ counts rows that differ in content, SameContent of them only in revision numbers.
	Differ      int       `json:"differ"`
	SameContent int       `json:"sameContent,omitempty"`
	Compared    int       `json:"compared"`
	Rows        []DiffRow `json:"rows"`
	// More counts rows beyond the listed.
	More int `json:"more,omitempty"`
	// Normal are rows that differ as they do between healthy members; they do not count.
	Normal []DiffRow `json:"normal,omitempty"`
}

// DiffRow is one row that differs, with every member's version of it; a member without it has nil.
type DiffRow struct {
	Key check.Bytes `json:"key"`
	// Object names what Kubernetes keeps under the key; nil for other values.
	Object  *evidence.Object     `json:"object,omitempty"`
	Members map[string]*DiffCell `json:"members"`
}

// DiffCell is one member's version of a row. For key rows the revision fields are set; Text describes other buckets'
// rows.
type DiffCell struct {
	ModRevision int64 `json:"modRevision,omitempty"`
	// SubRevision is the place of the record among those of its transaction.
	SubRevision    int64  `json:"subRevision,omitempty"`
	CreateRevision int64  `json:"createRevision,omitempty"`
	Version        int64  `json:"version,omitempty"`
	Lease          string `json:"lease,omitempty"`
	Value          *Value `json:"value,omitempty"`
	Text           string `json:"text,omitempty"`
}

// Value is a value in JSON: length and digest (see docs/PRIVACY.md), and the bytes only when asked for.
type Value struct {
	Len    int          `json:"len"`
	Digest string       `json:"digest"`
	Bytes  *check.Bytes `json:"bytes,omitempty"`
}

// LogComparison is the logs entry by entry over the indexes that two or more members hold.
type LogComparison struct {
	FirstIndex uint64 `json:"firstIndex"`
	LastIndex  uint64 `json:"lastIndex"`
	// Compared counts the indexes from FirstIndex to LastIndex that every log holds.
	Compared int `json:"compared"`
	// Equal is unknown when no index is held by two members.
	Equal       release.Answer    `json:"equal"`
	Differ      []LogDiff         `json:"differ"`
	LastIndexes map[string]uint64 `json:"lastIndexes"`
	// Damage says by member where its log has lost committed entries, which are not compared then.
	Damage map[string][]string `json:"damage,omitempty"`
}

// LogDiff is one index at which committed entries differ.
type LogDiff struct {
	Index   uint64            `json:"index"`
	Members map[string]string `json:"members"`
}
