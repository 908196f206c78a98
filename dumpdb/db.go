package dumpdb

import (
	"context"
	"iter"
)

// Open opens a bbolt file read-only: a db of a data dir, a .snap.db or a backup. It fails when the file can not be read
// or neither meta page can be used (the error is then a *DamageError); other damage is met while reading.
func Open(path string) (*DB, error) { return nil, nil }

// DB is an opened bbolt file. It is safe for concurrent readers.
type DB struct{}

// Close closes the file.
func (db *DB) Close() error { return nil }

// Size returns the file size in bytes, PageSize the page size the used meta page names.
func (db *DB) Size() int64 { return 0 }

// PageSize returns the page size the used meta page names.
func (db *DB) PageSize() int { return 0 }

// Metas returns both meta pages, valid or not.
func (db *DB) Metas() []Meta { return nil }

// PageReport is the result of a full walk over the page graph.
type PageReport struct {
	Damage []*DamageError
	// Pages is the high-water mark; the others count page ids (overflow pages included).
	Pages, Reachable, Free, Lost uint64
	// FreelistStored is false when the file keeps no freelist (etcd 3.3+ on Linux); Free then counts what is unreachable.
	FreelistStored bool
}

// Check walks every page reachable from the used meta page. It never faults; what it finds is in the report.
func (db *DB) Check(ctx context.Context) (*PageReport, error) { return nil, nil }

// Bucket is one top-level bucket.
type Bucket struct {
	Name string
	Root uint64
	// Inline is true when the bucket lives in its parent's leaf.
	Inline bool
	Place
}

// Buckets lists the top-level buckets in name order; damage in the root tree is returned beside what was found.
func (db *DB) Buckets() ([]Bucket, []*DamageError) { return nil, nil }

// Rows yields the rows of a bucket in key order. Damage is yielded as *DamageError beside a zero Row and the iteration
// goes on with the next readable page. A missing bucket yields nothing.
func (db *DB) Rows(bucket string) iter.Seq2[Row, error] { return nil }

// Revisions yields the records of bucket key in revision order, decoded; damage as in Rows.
func (db *DB) Revisions() iter.Seq2[Revision, error] { return nil }

// RevisionsFrom is Revisions starting at the first record not below from.
func (db *DB) RevisionsFrom(from Rev) iter.Seq2[Revision, error] { return nil }

// MetaBucket reads bucket meta.
func (db *DB) MetaBucket() (MetaBucket, error) { return MetaBucket{}, nil }

// Auth reads buckets auth, authUsers and authRoles. On error what could be read is returned too, as in all readers below.
func (db *DB) Auth() (Auth, error) { return Auth{}, nil }

// Leases reads bucket lease.
func (db *DB) Leases() ([]Lease, error) { return nil, nil }

// Alarms reads bucket alarm.
func (db *DB) Alarms() ([]Alarm, error) { return nil, nil }

// Members reads bucket members.
func (db *DB) Members() ([]Member, error) { return nil, nil }

// RemovedMembers reads bucket members_removed.
func (db *DB) RemovedMembers() ([]ID, error) { return nil, nil }

// Cluster reads bucket cluster.
func (db *DB) Cluster() (Cluster, error) { return Cluster{}, nil }

// KVStats is what one pass over bucket key shows.
type KVStats struct {
	// CurrentRev is derived as the server derives it: the last main revision, but at least the compaction marks.
	CurrentRev int64
	// CompactRev is max(scheduled, finished), -1 when the db was never compacted.
	CompactRev int64
	// FirstRev is the oldest record.
	FirstRev   Rev
	Revisions  int64
	Tombstones int64
	// LiveKeys counts keys whose newest record is no tombstone.
	LiveKeys int64
	// Violations are the MVCC truths that do not hold; see Violation.
	Violations []Violation
	// BumpMarker is the revision of the empty record written by restore --bump-revision; zero when none.
	BumpMarker Rev
}

// Violation is one broken MVCC invariant and its place.
type Violation struct {
	Place
	Rev
	// Rule names the invariant: contiguous-main, contiguous-sub, mod-revision, create-revision, version-chain,
	// tombstone-without-life, undecodable, unknown-lease.
	Rule               string
	Key                []byte
	Expected, Observed string
}

// KVStats reads bucket key once and checks the MVCC truths.
func (db *DB) KVStats(ctx context.Context) (*KVStats, error) { return nil, nil }

// HashKV is a key-value hash as the server's HashKV API returns it; comparable only at equal Rev and CompactRev.
type HashKV struct {
	Hash       uint32 `json:"hash"`
	Rev        int64  `json:"revision"`
	CompactRev int64  `json:"compactRevision"`
}

// HashKV computes the server's HashKV at rev (0: the current revision), read-only. ErrCompacted and ErrFutureRev tell
// that the revision is out of reach.
func (db *DB) HashKV(ctx context.Context, rev int64) (HashKV, error) { return HashKV{}, nil }

// BucketHash is a content hash of a bucket, independent of page layout and of what legally differs between members
// (bcrypt salts, lease TTL floor, superseded revisions at or below the compact revision, meta/consistent_index and term).
// Equal hashes mean equal content by meaning; it is comparable across members and etcd versions.
func (db *DB) BucketHash(ctx context.Context, bucket string) (string, error) { return "", nil }
