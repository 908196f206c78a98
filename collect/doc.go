// Package collect copies the data dir of a member while its server runs, so that the parts belong together.
//
// The database comes through the maintenance snapshot, or from the file while nothing is written to it. The WAL is only
// appended to, so what is read of it after the database reaches at least to the database's consistent index. The
// segments and .snap files are opened before, and stay readable when the server purges them. At the end it is proven
// that the parts belong together; else it is all done again, a bounded number of times. Nothing is locked, written to
// or stopped.
package collect

import (
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// ManifestName is the file of an archive that says what is in it and how it was taken.
const ManifestName = evidence.CollectedName

// Manifest is what a collection says about itself; it is the last file of the archive.
type Manifest struct {
	SchemaVersion int       `json:"schemaVersion"`
	Version       string    `json:"version"`
	Host          string    `json:"host,omitempty"`
	DataDir       string    `json:"dataDir"`
	WALDir        string    `json:"walDir"`
	Endpoint      string    `json:"endpoint,omitempty"`
	Server        string    `json:"server,omitempty"`
	Started       time.Time `json:"started"`
	Finished      time.Time `json:"finished"`
	// Attempts counts how often the copy was begun.
	Attempts  int        `json:"attempts"`
	MemberID  dumplog.ID `json:"memberID"`
	ClusterID dumplog.ID `json:"clusterID"`
	// ConsistentIndex and Term are those of the database, FirstIndex and LastIndex those of the log without gap around
	// it.
	ConsistentIndex uint64 `json:"consistentIndex"`
	Term            uint64 `json:"term,omitempty"`
	FirstIndex      uint64 `json:"firstIndex"`
	LastIndex       uint64 `json:"lastIndex"`
	// Proven are the things that were proven of the copy, LeftOut files that are not in it and why, Notes what is
	// remarkable.
	Proven  []string  `json:"proven"`
	LeftOut []LeftOut `json:"leftOut"`
	Notes   []string  `json:"notes"`
	Files   []File    `json:"files"`
}

// SchemaVersion is that of the manifest.
const SchemaVersion = 1

// LeftOut is a file that was not collected.
type LeftOut struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// RefusedError says that a precondition does not hold; nothing was written.
type RefusedError struct{ Reason, Hint string }

// Error implements error.
func (e *RefusedError) Error() string { return e.Reason }

// Refused tells that nothing was done.
func (e *RefusedError) Refused() bool { return true }

// UnprovenError says that the parts of a copy could not be proven to belong together; no copy is kept.
type UnprovenError struct {
	Attempts int
	Last     error
}

// Error implements error.
func (e *UnprovenError) Error() string {
	return "after " + times(e.Attempts) + " it is not proven that database and log belong together: " + e.Last.Error()
}

// Unwrap returns why the last attempt failed.
func (e *UnprovenError) Unwrap() error { return e.Last }

// Inconclusive tells that the job could not be decided.
func (e *UnprovenError) Inconclusive() bool { return true }

// File is a file of the archive.
type File struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
	SHA256  string    `json:"sha256"`
}
