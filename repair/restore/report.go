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
	// TokenGiven is false where the token was made from the backup and the start revision.
	TokenGiven bool     `json:"tokenGiven"`
	Members    []Member `json:"members"`
	Revision   Revision `json:"revision"`
	// Servers names the etcd lines that can start the dirs.
	Servers string `json:"servers"`
	// GivesUp are the things that the backup does not bring back, Notes what else is to be known.
	GivesUp []string `json:"givesUp"`
	Notes   []string `json:"notes"`
	// Warnings are what goes wrong when the result is used in another way than it was made for.
	Warnings []string `json:"warnings"`
	// Log says what the log of a data dir has above its database; nil for a backup.
	Log *rebuild.CaughtUp `json:"log,omitempty"`
	// After is the diagnosis of the new dirs, taken together.
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
	// Start is the command that starts the member, TLS and tuning flags of the installation left out.
	Start string `json:"start"`
	// StartArgs is the same as a list of arguments.
	StartArgs shell.Command `json:"startArgs"`
}

// Behind tells whether the data dir's log holds entries that are not in the new cluster, or may not be.
func (r *Report) Behind() bool { return r.Log != nil && !r.Log.Whole() }

// RefusedError says which precondition does not hold; nothing was written. Commands end with exit code 5.
type RefusedError struct{ Reason, Hint string }

// Error returns the reason on one line.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Refused tells commands to end with exit code 5.
func (e *RefusedError) Refused() bool { return true }
