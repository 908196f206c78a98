package dumpdb

import (
	"fmt"
	"strconv"
	"strings"
)

// ID is a 64-bit member, cluster or lease identifier; text and JSON form is lower-case hex without leading zeros.
type ID uint64

// String returns the ID in lower-case hex without leading zeros.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalText writes the hex form, so that JSON has a string: IDs exceed 2^53.
func (id ID) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(id), 16), nil }

// UnmarshalText reads the hex form.
func (id *ID) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 16, 64)
	*id = ID(v)
	return err
}

// Rev is an MVCC revision: Main counts transactions, Sub the records in one (server/storage/mvcc/revision.go).
type Rev struct {
	Main int64 `json:"main"`
	Sub  int64 `json:"sub"`
}

// String returns main.sub, such as 1043.0.
func (r Rev) String() string { return fmt.Sprintf("%d.%d", r.Main, r.Sub) }

// Less orders revisions as the key bucket does.
func (r Rev) Less(o Rev) bool { return r.Main < o.Main || r.Main == o.Main && r.Sub < o.Sub }

// ParseRev reads "1043" or "1043.0".
func ParseRev(s string) (Rev, error) {
	m, sub, _ := strings.Cut(s, ".")
	var r Rev
	var err error
	if r.Main, err = strconv.ParseInt(m, 10, 64); err == nil && sub != "" {
		r.Sub, err = strconv.ParseInt(sub, 10, 64)
	}
	if err != nil {
		return Rev{}, fmt.Errorf("%q is not a revision (want 1043 or 1043.0): %w", s, err)
	}
	return r, nil
}

// Place is the position of a row in the file.
type Place struct {
	Page   uint64 `json:"page"`
	Offset int64  `json:"offset"`
}

// Row is one leaf element of a bucket. Key and Value are valid only until the iterator advances.
type Row struct {
	Place
	Key, Value []byte
	// Bucket is true if the value is itself a bucket (its root page and sequence, or an inline page). etcd has no
	// nested buckets.
	Bucket bool
}

// KeyValue is mvccpb.KeyValue.
type KeyValue struct {
	Key            []byte
	CreateRevision int64
	ModRevision    int64
	Version        int64
	Value          []byte
	Lease          int64
	// Unknown is the number of the last field that no release up to 3.8 writes, 0 if there is none.
	Unknown int32
}

// HoldsMore reports whether the record holds more than the key. In all versions, a tombstone holds only the key
// (server/storage/mvcc/kvstore_txn.go, delete).
func (kv *KeyValue) HoldsMore() bool {
	return kv.CreateRevision|kv.ModRevision|kv.Version|kv.Lease != 0 || len(kv.Value) > 0
}

// Revision is one record of the key bucket. Slices are valid only until the iterator advances.
type Revision struct {
	Place
	Rev
	Tombstone bool
	KV        KeyValue
	// Raw is the value as stored, RawKey the 17 or 18 byte bucket key.
	Raw, RawKey []byte
	// Err is non-nil if bucket key or value does not decode; then KV is zero or partial.
	Err error
}

// Meta is one of the two meta pages (go.etcd.io/bbolt internal/common/meta.go).
type Meta struct {
	Page      uint64 `json:"page"`
	Offset    int64  `json:"offset"`
	Txid      uint64 `json:"txid"`
	PageSize  uint32 `json:"pageSize"`
	Root      uint64 `json:"root"`
	Freelist  uint64 `json:"freelist"`
	HighWater uint64 `json:"highWater"`
	// Checksum is the stored FNV-1a-64 of the first 56 bytes, Computed the actual one.
	Checksum uint64 `json:"-"`
	Computed uint64 `json:"-"`
	Valid    bool   `json:"valid"`
	// Problem says why the meta page is not valid.
	Problem string `json:"problem,omitempty"`
	// HeaderProblem says what is wrong with the page header of a valid meta page. bbolt does not read that header, so
	// it opens the file anyway.
	HeaderProblem string `json:"headerProblem,omitempty"`
	// Used marks the meta page that bbolt uses: the valid one with the higher txid.
	Used bool `json:"used"`
}

// MetaBucket is the content of bucket meta. Pointers are nil if the key is absent.
type MetaBucket struct {
	// ConsistentIndex is the raft index of the last applied entry known to be in this file (3.0+; the package comment
	// says when each version writes it). Term is the term of that entry (3.5+).
	ConsistentIndex *uint64
	Term            *uint64
	ConfState       *ConfState // 3.5+
	StorageVersion  string     // 3.6+, "" when absent
	// ScheduledCompact and FinishedCompact are the last requested and last completed compaction.
	ScheduledCompact *Rev
	FinishedCompact  *Rev
	// Unknown are the keys that this package does not know.
	Unknown []Row
}

// ConfState is the JSON raft configuration in meta/confState (3.5+).
type ConfState struct {
	Voters         []ID `json:"voters"`
	Learners       []ID `json:"learners,omitempty"`
	VotersOutgoing []ID `json:"votersOutgoing,omitempty"`
	LearnersNext   []ID `json:"learnersNext,omitempty"`
	AutoLeave      bool `json:"autoLeave,omitempty"`
}

// Auth is the content of buckets auth, authUsers and authRoles.
type Auth struct {
	Enabled  bool
	Revision uint64
	// HasRevision is false if the file never stored a revision.
	HasRevision bool
	Users       []User
	Roles       []Role
	// Unknown are the keys of bucket auth that this package does not know.
	Unknown []Row
}

// User is authpb.User. Password is the bcrypt hash: a secret.
type User struct {
	Place
	Name       string
	Password   []byte
	Roles      []string
	HasOptions bool
	NoPassword bool
	// Unknown is the number of the last field that no release up to 3.8 writes, 0 if there is none. Options may have
	// more fields: they come from a client.
	Unknown int32
}

// Role is authpb.Role.
type Role struct {
	Place
	Name  string
	Perms []Permission
	// Unknown is the number of the last field that no release up to 3.8 writes, 0 if there is none. Perms may have more
	// fields: they come from a client.
	Unknown int32
}

// Permission is authpb.Permission. Type: 0 READ, 1 WRITE, 2 READWRITE. RangeEnd "\x00" means to the end of the key
// space.
type Permission struct {
	Type          int32
	Key, RangeEnd []byte
}

// Lease is leasepb.Lease; TTL and RemainingTTL in seconds, RemainingTTL 3.4+.
type Lease struct {
	Place
	ID           ID
	TTL          int64
	RemainingTTL int64
}

// Alarm is etcdserverpb.AlarmMember. Type: 1 NOSPACE, 2 CORRUPT.
type Alarm struct {
	Place
	MemberID ID
	Type     int32
}

// Member is one row of bucket members.
type Member struct {
	Place
	ID         ID       `json:"id"`
	Name       string   `json:"name,omitempty"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs,omitempty"`
	IsLearner  bool     `json:"isLearner,omitempty"`
}

// Cluster is the content of bucket cluster.
type Cluster struct {
	Version string
	// DowngradeTarget is set while a downgrade is enabled (3.5+).
	DowngradeTarget  string
	DowngradeEnabled bool
	// Unknown are the keys that this package does not know.
	Unknown []Row
}
