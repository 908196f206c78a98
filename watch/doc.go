// Package watch repeatedly asks the members of a running cluster whether they have the same data, and raises an event
// for the first difference.
//
// Members are never at the same index at the same moment, so a single observation proves nothing. Content is compared
// by HashKV at one revision that all members have, and only between members with the same compact revision. Revisions
// are compared through raft indexes: a member that has applied everything that another one had applied must have
// reached its revision. Auth revisions are compared between members that do not lag. A difference must be seen in two
// rounds in a row.
package watch

import (
	"context"
	"time"
)

// Kind says what differs.
type Kind string

// The kinds of divergence.
const (
	KindHash     Kind = "hash"
	KindRevision Kind = "revision"
	KindAuth     Kind = "auth"
	KindKeys     Kind = "keys"
)

// Kinds are all kinds.
var Kinds = []Kind{KindHash, KindRevision, KindAuth, KindKeys}

// Status is one answer of a member.
type Status struct {
	ID, Cluster   uint64
	Version       string
	Revision      int64
	Applied, Term uint64
	Leader        uint64
	Learner       bool
	DBSize, InUse int64
	Errors        []string
}

// Hash is a member's HashKV at a revision.
type Hash struct {
	Hash    uint32
	Compact int64
}

// Auth is the auth revision and a digest of users and roles, 0 if unknown.
type Auth struct {
	Enabled  bool
	Revision uint64
	Digest   uint64
}

// Member is a running member; tests have their own.
type Member interface {
	// Endpoint is where the member is asked; results name the member by it.
	Endpoint() string
	// Status returns what the member says about itself; it needs no leader.
	Status(ctx context.Context) (Status, error)
	// HashKV and Keys return the hash and the number of keys at a revision.
	HashKV(ctx context.Context, revision int64) (Hash, error)
	Keys(ctx context.Context, revision int64) (int64, error)
	// AuthStatus works since 3.5; AuthBucket reads a whole snapshot stream.
	AuthStatus(ctx context.Context) (Auth, error)
	AuthBucket(ctx context.Context) (Auth, error)
	// Alarms returns the alarms of all members, by member ID. The request is an entry in the log; since 3.4 the status
	// says the same.
	Alarms(ctx context.Context) (map[uint64][]string, error)
	// Names returns the names of all members, by member ID.
	Names(ctx context.Context) (map[uint64]string, error)
	// Metrics returns the server's own metrics in Prometheus format.
	Metrics(ctx context.Context) ([]byte, error)
	// Save writes the member's snapshot to a new file.
	Save(ctx context.Context, file string) error
	// Because adds to an error that only says that the time is over why the endpoint does not accept a connection.
	Because(ctx context.Context, err error) error
	// Connections returns how often a connection was made, 0 if that is unknown. A restart of the server is one more.
	Connections() int64
	// Close ends the connection. The next question opens a new one.
	Close() error
}

// Seen is the result of a round for one member.
type Seen struct {
	Endpoint, Name string
	// Err is why the member could not be asked; then nothing else is set.
	Err error
	// First and Second are two answers, some time apart.
	First, Second Status
	Hash          *Hash
	// NotHashed is why a member that was asked for its hash gave none.
	NotHashed error
	Keys      *int64
	Auth      *Auth
	Alarms    []string
}

// Round is the result of asking all members once.
type Round struct {
	At time.Time
	// Revision is the revision of hashes and keys, 0 if they were not compared.
	Revision int64
	Members  []Seen
	// Unasked are the members that the cluster lists and the watch does not ask, by name or ID. It is empty if a member
	// did not answer: that may be one of them.
	Unasked []string
}

// Event is a divergence that was found, or that is over.
type Event struct {
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at"`
	// Over is true if the divergence is not seen any more.
	Over bool `json:"over,omitempty"`
	// Members are those that differ from the majority; without a majority, all that differ.
	Members  []string `json:"members"`
	Revision int64    `json:"revision,omitempty"`
	Detail   string   `json:"detail"`
}
