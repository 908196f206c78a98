package rebuild

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// SchemaVersion is the version of the document of this package.
const SchemaVersion = 1

// Result is the document of rebuild.
type Result struct {
	SchemaVersion int `json:"schemaVersion"`
	// Base is the label of the base, "" for the empty state; Logs are the labels of the sources whose log was used.
	Base string   `json:"base"`
	Logs []string `json:"logs"`
	// Etcd is the minor version whose rules were used, such as 3.5.
	Etcd   string `json:"etcd"`
	Target string `json:"target"`
	// From is the state of the base, To that of the result.
	From Point `json:"from"`
	To   Point `json:"to"`
	// ByMajority says how the last executed entries are known to be committed, if no source shows it; else empty.
	ByMajority string `json:"byMajority,omitempty"`
	// Entries counts the executed entries, Applied those with an effect, Refused those that the rules refuse. Records
	// counts the written records of bucket key.
	Entries int64 `json:"entries"`
	Applied int64 `json:"applied"`
	Refused int64 `json:"refused"`
	Records int64 `json:"records"`
	Keys    int64 `json:"keys"`
	// Output is the backup, DB the database without trailer, SHA256 the sum in the trailer.
	Output string `json:"output"`
	DB     string `json:"db,omitempty"`
	SHA256 string `json:"sha256"`
	// HashKV is the server's hash of the result at its revision.
	HashKV       uint32        `json:"hashKV"`
	Skipped      []EntryLine   `json:"skipped"`
	Consequences *Consequences `json:"consequences,omitempty"`
	// Doubtful are entries whose outcome neither log nor base decide, with the assumed outcome; DoubtfulCount counts
	// all.
	Doubtful      []EntryLine `json:"doubtful"`
	DoubtfulCount int64       `json:"doubtfulCount"`
	// Unsettled counts those of them that equal content of a member does not settle: no database shows whether the
	// effect belongs to this entry or to a later one after the target.
	Unsettled int64 `json:"unsettled"`
	// Verified compares the result with members that have passed the point; empty if there is none.
	Verified []Verification `json:"verified"`
	Notes    []string       `json:"notes"`
}

// Point is a position in log and database. CompactRevision is -1 if nothing was compacted.
type Point struct {
	Index           uint64 `json:"index"`
	Term            uint64 `json:"term"`
	Revision        int64  `json:"revision"`
	CompactRevision int64  `json:"compactRevision"`
}

// EntryLine is one log entry in words.
type EntryLine struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	What  string `json:"what"`
	Why   string `json:"why,omitempty"`
}

// Consequences are the changes in later entries because of skipped ones.
type Consequences struct {
	// Entries are later entries with a different outcome, EntryCount counts all.
	Entries    []Difference `json:"entries"`
	EntryCount int64        `json:"entryCount"`
	// Keys are the keys with a different final value, or in one history only; KeyCount counts all.
	Keys     []KeyDifference `json:"keys"`
	KeyCount int64           `json:"keyCount"`
	// EmptyRevisions are the revisions of skipped entries, which now have no records.
	EmptyRevisions []int64 `json:"emptyRevisions"`
}

// Difference is an entry with a different outcome because of the skipped ones.
type Difference struct {
	EntryLine
	Without string `json:"without"`
	With    string `json:"with"`
}

// KeyDifference is a key that differs between the two histories. With is its state in the result.
type KeyDifference struct {
	Key     check.Bytes `json:"key"`
	Without string      `json:"without"`
	With    string      `json:"with"`
}

// Verification is the comparison with one member.
type Verification struct {
	Member string `json:"member"`
	// Revision is the revision up to which bucket key was compared.
	Revision int64 `json:"revision"`
	// HashKV says whether the server's own hash at that revision is equal; unknown if compact revisions differ.
	HashKV  release.Answer `json:"hashKV"`
	Buckets []Bucket       `json:"buckets"`
}

// Bucket is one bucket compared with a member's. Equal is unknown if they cannot be compared; Why is the reason.
type Bucket struct {
	Bucket string         `json:"bucket"`
	Equal  release.Answer `json:"equal"`
	Why    string         `json:"why,omitempty"`
}

// Equal reports whether a member proves the result: nothing differs and bucket key was compared to the end.
func (r *Result) Equal() bool {
	for _, v := range r.Verified {
		if v.proves(r.To.Revision) {
			return true
		}
	}
	return false
}

func (v *Verification) proves(rev int64) bool {
	ok := false
	if v.HashKV.Excluded() {
		return false
	}
	for _, b := range v.Buckets {
		if b.Equal.Excluded() {
			return false
		}
		ok = ok || b.Bucket == "key" && b.Equal != release.Unknown && v.Revision == rev
	}
	return ok
}

// Differs reports whether a member contradicts the result.
func (r *Result) Differs() bool {
	for _, v := range r.Verified {
		if v.HashKV.Excluded() {
			return true
		}
		for _, b := range v.Buckets {
			if b.Equal.Excluded() {
				return true
			}
		}
	}
	return false
}

// Gap is a span of raft indexes, both included.
type Gap struct{ From, To uint64 }

// String is one index or a range.
func (g Gap) String() string {
	if g.From == g.To {
		return fmt.Sprint(g.From)
	}
	return fmt.Sprintf("%d..%d", g.From, g.To)
}

// MissingError says which indexes no log holds. It is the Err of the refusal.
type MissingError struct {
	// Missing are the indexes that no log holds, in order.
	Missing []Gap
	what    string // what they are needed for
}

// Error returns what is not possible without the missing indexes.
func (e *MissingError) Error() string {
	var gaps []string
	for _, g := range e.Missing {
		gaps = append(gaps, g.String())
	}
	return e.what + "; missing are the indexes " + strings.Join(gaps, ", ")
}

func refuse(format string, args ...any) error {
	return refusal.New("", format, args...)
}

// maxListed bounds the lists of a result.
const maxListed = 200

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}
