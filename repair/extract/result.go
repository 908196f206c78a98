package extract

import (
	"errors"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// SchemaVersion is the version of the documents of this package.
const SchemaVersion = 1

// Result is the document of extract: the selection, the output, and what is missing.
type Result struct {
	SchemaVersion int    `json:"schemaVersion"`
	Source        string `json:"source"`
	SourceKind    string `json:"sourceKind"`
	Format        string `json:"format"`
	// Output is the file or folder that was written; "" if nothing was.
	Output string `json:"output,omitempty"`
	// Revision is the revision of the state. CompactRevision is the source's, -1 if it was never compacted.
	Revision        int64 `json:"revision"`
	CompactRevision int64 `json:"compactRevision"`
	// Keys counts distinct keys (with a history: records, see Records). DeletedKeys counts the deleted ones among them,
	// extracted with their last value.
	Keys        int64 `json:"keys"`
	DeletedKeys int64 `json:"deletedKeys"`
	// Records counts records written, Tombstones the deletions among them (only with a history), Salvaged those from
	// damaged or unused pages.
	Records    int64 `json:"records"`
	Tombstones int64 `json:"tombstones"`
	Salvaged   int64 `json:"salvaged"`
	// Bytes counts keys and values, Files the files written in a folder.
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files,omitempty"`
	// SHA256 is the sum of a backup without its trailer, which contains the sum.
	SHA256  string       `json:"sha256,omitempty"`
	Leases  LeaseUse     `json:"leases"`
	Lost    Lost         `json:"lost"`
	LeftOut []LeftOut    `json:"leftOut"`
	Cluster *ClusterCopy `json:"cluster,omitempty"`
	// Log describes the entries of a data dir's log above its database; nil for a source without a log.
	Log   *rebuild.CaughtUp `json:"log,omitempty"`
	Notes []string          `json:"notes"`
}

// LeaseUse says how the leases of selected keys were handled.
type LeaseUse struct {
	// Handling is grant, detach or skip.
	Handling string `json:"handling"`
	// Keys counts selected keys with a lease, Leases the distinct leases. Unknown counts keys whose lease is not in the
	// source: they never expire.
	Keys    int64 `json:"keys"`
	Leases  int64 `json:"leases"`
	Unknown int64 `json:"unknown"`
}

// Lost is the data that the source should have but does not provide.
type Lost struct {
	// Damage are the unreadable places; MoreDamage counts those after the first 1000.
	Damage     []Damage `json:"damage"`
	MoreDamage int64    `json:"moreDamage,omitempty"`
	// Undecodable counts records of bucket key that do not decode.
	Undecodable int64 `json:"undecodable"`
	// NoValue are deleted keys whose last value was compacted away, at most 1000; NoValueCount counts all.
	NoValue      []check.Bytes `json:"noValue"`
	NoValueCount int64         `json:"noValueCount"`
	// Trailer is "mismatch" if the sha256 trailer of a backup does not match its bytes: then any value may be wrong.
	Trailer string `json:"trailer,omitempty"`
	// Ending is set if the length of the file fits neither its content nor a trailer.
	Ending dumpdb.Ending `json:"ending,omitempty"`
	// NotFound are keys that were requested by name and do not exist.
	NotFound []check.Bytes `json:"notFound"`
}

// Damage is one unreadable place of the source, with the main revisions it may hide. 0 means that the span is open;
// both are 0 outside bucket key.
type Damage struct {
	Page          uint64 `json:"page"`
	Offset        int64  `json:"offset"`
	Bucket        string `json:"bucket,omitempty"`
	Kind          string `json:"kind"`
	FirstRevision int64  `json:"firstRevision,omitempty"`
	LastRevision  int64  `json:"lastRevision,omitempty"`
	Detail        string `json:"detail"`
}

// LeftOut counts selected keys that the format cannot represent, with the first of them.
type LeftOut struct {
	Reason string        `json:"reason"`
	Count  int64         `json:"count"`
	Keys   []check.Bytes `json:"keys"`
}

// maxListed bounds the lists of a result.
const maxListed = 1000

// Short reports whether the extract is less than what was requested.
func (r *Result) Short() bool {
	l := &r.Lost
	return len(l.Damage) > 0 || l.Trailer != "" || l.Ending != "" || l.Undecodable > 0 || l.NoValueCount > 0 ||
		len(l.NotFound) > 0 || len(r.LeftOut) > 0 ||
		r.Cluster != nil && (r.Cluster.Failed > 0 || r.Cluster.Conflicts > 0)
}

// Behind reports whether the source's log has entries that are missing from the extract, or may be.
func (r *Result) Behind() bool { return r.Log != nil && !r.Log.Whole() }

// Empty reports whether nothing was found.
func (r *Result) Empty() bool { return r.Records == 0 }

// damaged records an unreadable place; it returns other errors.
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
	if len(r.Lost.Damage) >= maxListed {
		r.Lost.MoreDamage++
		return
	}
	x := Damage{Page: d.Page, Offset: d.Offset, Bucket: d.Bucket, Kind: string(d.Kind), Detail: d.Error()}
	if first, last, ok := d.LostRevisions(); ok {
		x.FirstRevision, x.LastRevision = first, last
	}
	if slices.Contains(r.Lost.Damage, x) {
		return // several buckets and passes read the same page
	}
	r.Lost.Damage = append(r.Lost.Damage, x)
}

// leave counts a key that the format cannot represent.
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

func refuse(format string, args ...any) error {
	return refusal.New("", format, args...)
}
