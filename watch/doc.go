// Package watch asks the members of a running cluster again and again whether they still hold the same, and raises the
// first difference.
//
// Members are never at the same place at the same moment, so nothing is judged by one look. Content is compared by
// HashKV at one revision that all have, and only between members that have compacted to the same revision. Revisions
// are compared through raft indexes: who has applied all that another one had applied must have reached its revision.
// Auth revisions are compared between members that are not behind. What is seen in one round must be seen in the next
// one too.
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

// Auth is what decides about rights: the revision and a digest of users and roles, 0 where it is not known.
type Auth struct {
	Enabled  bool
	Revision uint64
	Digest   uint64
}

// Member is a running member; tests have their own.
type Member interface {
	Endpoint() string
	Status(ctx context.Context) (Status, error)
	// HashKV and Keys are those at a revision.
	HashKV(ctx context.Context, revision int64) (Hash, error)
	Keys(ctx context.Context, revision int64) (int64, error)
	// AuthStatus is known from 3.5 on; AuthBucket reads a whole snapshot stream.
	AuthStatus(ctx context.Context) (Auth, error)
	AuthBucket(ctx context.Context) (Auth, error)
	// Alarms are those of all members, by member ID.
	Alarms(ctx context.Context) (map[uint64][]string, error)
	// Names are those of all members, by member ID.
	Names(ctx context.Context) (map[uint64]string, error)
	// Metrics are those that the server itself gives to Prometheus.
	Metrics(ctx context.Context) ([]byte, error)
	// Save writes the member's snapshot to a new file.
	Save(ctx context.Context, file string) error
	Close() error
}

// Seen is what a round learned of one member.
type Seen struct {
	Endpoint, Name string
	// Err is why the member could not be asked; nothing else is set then.
	Err error
	// First and Second are two looks, some time apart.
	First, Second Status
	Hash          *Hash
	// NotHashed is why a member that was asked for its hash gave none.
	NotHashed error
	Keys      *int64
	Auth      *Auth
	Alarms    []string
}

// Round is one look at all members.
type Round struct {
	At time.Time
	// Revision is the one at which hashes and keys were taken, 0 when they were not.
	Revision int64
	Members  []Seen
}

// Event is a divergence that was found, or that is over.
type Event struct {
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at"`
	// Over is true when it is not seen any more.
	Over bool `json:"over,omitempty"`
	// Members differ from most others; both sides are named where there is no majority.
	Members  []string `json:"members"`
	Revision int64    `json:"revision,omitempty"`
	Detail   string   `json:"detail"`
}
