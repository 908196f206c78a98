package extract

import (
	"errors"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// SchemaVersion is the version of the documents of this package.
const SchemaVersion = 1

// Result is the document of extract: what was taken, what it became, and what could not be had.
type Result struct {
	SchemaVersion int    `json:"schemaVersion"`
	Source        string `json:"source"`
	SourceKind    string `json:"sourceKind"`
	Format        string `json:"format"`
	// Output is the file or folder that was written; "" when nothing was.
	Output string `json:"output,omitempty"`
	// Revision is the revision at which the state was taken, CompactRevision the source's, -1 when it was never
	// compacted.
	Revision        int64 `json:"revision"`
	CompactRevision int64 `json:"compactRevision"`
	// Keys counts distinct keys (with a history: records, see Records), DeletedKeys those of them that were deleted and
	// are brought with their last value.
	Keys        int64 `json:"keys"`
	DeletedKeys int64 `json:"deletedKeys"`
	// Records counts records written, Tombstones those of them that are deletions (with a history only), Salvaged those
	// that stood in damaged or unused pages.
	Records    int64 `json:"records"`
	Tombstones int64 `json:"tombstones"`
	Salvaged   int64 `json:"salvaged"`
	// Bytes counts keys and values, Files what was written in a folder.
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files,omitempty"`
	// SHA256 is that of a backup without its trailer, which holds it.
	SHA256  string       `json:"sha256,omitempty"`
	Leases  LeaseUse     `json:"leases"`
	Lost    Lost         `json:"lost"`
	LeftOut []LeftOut    `json:"leftOut"`
	Cluster *ClusterCopy `json:"cluster,omitempty"`
	// Log says what the log of a data dir has above its database; nil for a source without one.
	Log   *rebuild.CaughtUp `json:"log,omitempty"`
	Notes []string          `json:"notes"`
}

// LeaseUse says what became of the leases of selected keys.
type LeaseUse struct {
	// Handling is grant, detach or skip.
	Handling string `json:"handling"`
	// Keys counts selected keys with a lease, Leases the distinct leases, Unknown the keys whose lease the source does
	// not hold: they never expire.
	Keys    int64 `json:"keys"`
	Leases  int64 `json:"leases"`
	Unknown int64 `json:"unknown"`
}

// Lost is what the source should have and does not give.
type Lost struct {
	// Damage are the places that could not be read; MoreDamage counts those beyond the first 1000.
	Damage     []Damage `json:"damage"`
	MoreDamage int64    `json:"moreDamage,omitempty"`
	// Undecodable counts records of bucket key that make no sense.
	Undecodable int64 `json:"undecodable"`
	// NoValue are deleted keys whose last value was compacted away, at most 1000; NoValueCount counts all.
	NoValue      []check.Bytes `json:"noValue"`
	NoValueCount int64         `json:"noValueCount"`
	// Trailer is "mismatch" where the sha256 behind a backup is not that of its bytes: then any value may be wrong.
	Trailer string `json:"trailer,omitempty"`
	// NotFound are keys that were asked for by name and are not there.
	NotFound []check.Bytes `json:"notFound"`
}

// Damage is one place of the source that could not be read, with the main revisions it may hide: 0 where the span is
// open, both 0 when it is no span of bucket key.
type Damage struct {
	Page          uint64 `json:"page"`
	Offset        int64  `json:"offset"`
	Bucket        string `json:"bucket,omitempty"`
	Kind          string `json:"kind"`
	FirstRevision int64  `json:"firstRevision,omitempty"`
	LastRevision  int64  `json:"lastRevision,omitempty"`
	Detail        string `json:"detail"`
}

// LeftOut counts selected keys that the form cannot carry, with the first of them.
type LeftOut struct {
	Reason string        `json:"reason"`
	Count  int64         `json:"count"`
	Keys   []check.Bytes `json:"keys"`
}

// listed bounds the lists of a result.
const listed = 1000

// Short tells whether the extract is less than what was asked for.
func (r *Result) Short() bool {
	l := &r.Lost
	return len(l.Damage) > 0 || l.Trailer != "" || l.Undecodable > 0 || l.NoValueCount > 0 || len(l.NotFound) > 0 ||
		len(r.LeftOut) > 0 ||
		r.Cluster != nil && (r.Cluster.Failed > 0 || r.Cluster.Conflicts > 0)
}

// Behind tells whether the source's log holds entries that are not in the extract, or may not be.
func (r *Result) Behind() bool { return r.Log != nil && !r.Log.Whole() }

// Empty tells whether nothing was found at all.
func (r *Result) Empty() bool { return r.Records == 0 }

// damaged files a place that could not be read; other errors are returned.
func (r *Result) damaged(err error) error {
	if err == nil {
		return nil
	}
	var d *dumpdb.DamageError
	var many dumpdb.Damages
	switch {
	case errors.As(err, &many):
		for _, d := range many {
			r.lose(d)
		}
		return nil
	case errors.As(err, &d):
		r.lose(d)
		return nil
	}
	return err
}

func (r *Result) lose(d *dumpdb.DamageError) {
	if len(r.Lost.Damage) >= listed {
		r.Lost.MoreDamage++
		return
	}
	x := Damage{Page: d.Page, Offset: d.Offset, Bucket: d.Bucket, Kind: string(d.Kind), Detail: d.Error()}
	if first, last, ok := d.LostRevisions(); ok {
		x.FirstRevision, x.LastRevision = first, last
	}
	if slices.Contains(r.Lost.Damage, x) {
		return // several buckets and passes meet the same page
	}
	r.Lost.Damage = append(r.Lost.Damage, x)
}

// leave counts a key that the form cannot carry.
func (r *Result) leave(reason string, key []byte) {
	for i := range r.LeftOut {
		if l := &r.LeftOut[i]; l.Reason == reason {
			l.Count++
			if len(l.Keys) < 20 {
				l.Keys = append(l.Keys, append(check.Bytes{}, key...))
			}
			return
		}
	}
	r.LeftOut = append(r.LeftOut, LeftOut{Reason: reason, Count: 1, Keys: []check.Bytes{append(check.Bytes{}, key...)}})
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// RefusedError is a safety precondition that does not hold: nothing was written.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Refused marks the error as a refusal for callers that do not know this package.
func (e *RefusedError) Refused() bool { return true }

func refuse(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}
