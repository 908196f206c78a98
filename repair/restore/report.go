package restore

import (
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Report is the document of restore.
type Report struct {
	SchemaVersion int          `json:"schemaVersion"`
	Tool          compare.Tool `json:"tool"`
	Backup        Backup       `json:"backup"`
	ClusterID     dumplog.ID   `json:"clusterID"`
	Token         string       `json:"token"`
	// TokenGiven is false if the token was derived from the backup and the start revision.
	TokenGiven bool     `json:"tokenGiven"`
	Members    []Member `json:"members"`
	Revision   Revision `json:"revision"`
	// Servers lists the etcd versions that can start the dirs.
	Servers string `json:"servers"`
	// GivesUp is what the backup does not restore, Notes are other remarks.
	GivesUp []string `json:"givesUp"`
	Notes   []string `json:"notes"`
	// Warnings say what goes wrong if the result is used incorrectly.
	Warnings []string `json:"warnings"`
	// Log describes the entries of a data dir's log above its database; nil for a backup.
	Log *rebuild.CaughtUp `json:"log,omitempty"`
	// After is the diagnosis of the new dirs together.
	After           compare.Verdict `json:"after"`
	InputsUnchanged bool            `json:"inputsUnchanged"`
}

// Backup is the source of a restore.
type Backup struct {
	Name            string  `json:"name"`
	Bytes           int64   `json:"bytes"`
	SHA256          string  `json:"sha256"`
	Trailer         string  `json:"trailer"`
	Revision        int64   `json:"revision"`
	CompactRevision *int64  `json:"compactRevision"`
	Keys            *int64  `json:"keys"`
	ClusterVersion  string  `json:"clusterVersion,omitempty"`
	StorageVersion  *string `json:"storageVersion"`
	WroteBy         *string `json:"wroteBy"`
}

// Member is one new data dir.
type Member struct {
	Name       string     `json:"name"`
	MemberID   dumplog.ID `json:"memberID"`
	PeerURLs   []string   `json:"peerURLs"`
	ClientURLs []string   `json:"clientURLs,omitempty"`
	Bytes      int64      `json:"bytes"`
	// Start is the command that starts the member, without TLS and tuning flags.
	Start string `json:"start"`
	// StartArgs is the same as a list of arguments.
	StartArgs shell.Command `json:"startArgs"`
}

// Behind reports whether the data dir's log has entries that are missing in the new cluster, or may be.
func (r *Report) Behind() bool { return r.Log != nil && !r.Log.Whole() }
