// Package collect copies the data dir of a member while its server runs, so that the parts belong together.
//
// The database comes through the maintenance snapshot, or from the file while nothing writes to it. The server only
// appends to the WAL. So a log that is read after the database reaches at least the database's consistent index. The
// segments and .snap files are opened first, and stay readable when the server purges them. At the end the copy is
// checked: its parts must belong together. If they do not, it is made again, a limited number of times. Nothing is
// locked, written to or stopped.
package collect

import (
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// ManifestName is the file of an archive that describes its content and how it was collected.
const ManifestName = evidence.CollectedName

// Manifest describes a collection; it is the last file of the archive.
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
	// Attempts counts how often the copy was started.
	Attempts  int        `json:"attempts"`
	MemberID  dumplog.ID `json:"memberID"`
	ClusterID dumplog.ID `json:"clusterID"`
	// ConsistentIndex and Term are those of the database. FirstIndex and LastIndex bound the contiguous part of the log
	// around ConsistentIndex.
	ConsistentIndex uint64 `json:"consistentIndex"`
	Term            uint64 `json:"term,omitempty"`
	FirstIndex      uint64 `json:"firstIndex"`
	LastIndex       uint64 `json:"lastIndex"`
	// Proven lists what was proven about the copy, LeftOut the files that are not in it and why, Notes other remarks.
	Proven  []string  `json:"proven"`
	LeftOut []LeftOut `json:"leftOut"`
	Notes   []string  `json:"notes"`
	Files   []File    `json:"files"`
}

// SchemaVersion is the version of the manifest.
const SchemaVersion = 1

// LeftOut is a file that was not collected.
type LeftOut struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// UnprovenError says that the copy could not be proven consistent; it was removed.
type UnprovenError struct {
	Attempts int
	Last     error
}

// Error implements error.
func (e *UnprovenError) Error() string {
	return "after " + plural.Of(e.Attempts, "attempt", "attempts") + " it could not be proven that database and log " +
		"belong together: " + e.Last.Error()
}

// Unwrap returns why the last attempt failed.
func (e *UnprovenError) Unwrap() error { return e.Last }

// Inconclusive reports that there is no result.
func (e *UnprovenError) Inconclusive() bool { return true }

// File is a file of the archive.
type File struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
	SHA256  string    `json:"sha256"`
}
