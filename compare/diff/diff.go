// Package diff holds the content of several databases against each other, bucket by bucket, at the highest index that
// all of them have applied.
//
// What legally differs between healthy members is left out or listed separately: page layout, progress of a compaction,
// the salt of password hashes of proposers up to 3.4, lease TTLs that a server raised to its own minimum, the rows of
// bucket meta.
package diff

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Result is the comparison of all members.
type Result struct {
	Members []*evidence.Member
	// Common is the highest index that all compared members have applied as to their keys, 0 when unknown. The other
	// buckets are held to the lowest consistent index, which up to 3.4 can be lower.
	Common uint64
	lowest uint64
	// Revs are the members' revisions at Common, 0 for members that took no part in the comparison of keys.
	Revs []int64
	// Apart says which members took no part in the comparison of keys, by position, and why: those whose database
	// cannot be wound back or forward to the index at which the others are compared.
	Apart map[int]string
	// Compact is the highest compact revision among the members.
	Compact int64
	// LeftOut says which members took no part, by position, and why.
	LeftOut map[int]string
	Note    string
	Buckets []Bucket
	// Records compares the records of bucket key one by one; nil before that was done.
	Records *Records
	// Passwords are the users whose password hashes differ.
	Passwords []Password
}

// Bucket is one bucket over all members.
type Bucket struct {
	Name string
	// Equal is nil when it could not be compared; Reason says why.
	Equal  *bool
	Reason string
	// Compared counts distinct row keys. Only counts rows by member that no other has; Differ all rows that differ, and
	// SameContent those of them that differ in revision numbers only.
	Compared, Differ, SameContent int
	Only                          []int
	Rows                          []Row
	// Moved counts rows that differ only where an entry between what two members have applied explains it. Limits says
	// so of members whose rows could not all be compared, while those of others were.
	Moved  int
	Limits string
	// Normal are rows that differ as they do between healthy members; they are not counted.
	Normal []Row
}

// Row is a row that differs; Cells are by member, nil where the member does not have it. Out are members whose version
// of it cannot be compared with that of any other, because they have applied less or more.
type Row struct {
	Key   []byte
	Kind  RowKind
	Out   []int
	Cells []*Cell
	// SameContent is true when the cells differ in revision numbers only.
	SameContent bool
}

// RowKind tells what of a row is compared.
type RowKind string

// What is compared by itself: the TTL of a lease, the password of a user, and what a member publishes of itself.
const (
	WholeRow      RowKind = ""
	TTLRow        RowKind = "TTL"
	PasswordRow   RowKind = "password"
	AttributesRow RowKind = "attributes"
)

// Cell is one member's version of a row: for bucket key its revisions and value, else a description in Text.
type Cell struct {
	Mod, Create, Version, Lease int64
	ValueLen                    int
	ValueDigest                 string
	Value                       []byte
	// Object names what Kubernetes keeps in the value; its Kind is "" for other values.
	Object dumpdb.KubeObject
	Text   string
}

// Options tune Run.
type Options struct {
	// MaxRows bounds the rows kept per bucket; all are counted. 0 means 50.
	MaxRows int
	// Values keeps the values of differing rows.
	Values bool
	// MaxMarks bounds what is kept of live keys at a time, over all members, at about 80 bytes and the key each; more
	// keys take more passes over the databases. 0 means 1,000,000.
	MaxMarks int64
}

const defaultMaxMarks = 1_000_000

// Find returns the bucket of that name, nil when it was not compared.
func (r *Result) Find(name string) *Bucket {
	for i := range r.Buckets {
		if r.Buckets[i].Name == name {
			return &r.Buckets[i]
		}
	}
	return nil
}

// Align finds the common index and each member's revision there, and compares nothing yet.
func Align(members []*evidence.Member, rp *replay.Result) *Result {
	r := &Result{Members: members, Revs: make([]int64, len(members)), LeftOut: map[int]string{},
		Apart: map[int]string{}, Compact: -1}
	r.window(rp)
	return r
}

// Run compares the databases of all members. rp may be nil when there is no log; dbs are then aligned by revision.
func Run(ctx context.Context, members []*evidence.Member, rp *replay.Result, o Options) (*Result, error) {
	if o.MaxRows == 0 {
		o.MaxRows = 50
	}
	if o.MaxMarks == 0 {
		o.MaxMarks = defaultMaxMarks
	}
	r := Align(members, rp)
	key, err := r.keys(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Buckets = append(r.Buckets, key)
	for _, b := range smallBuckets {
		r.Buckets = append(r.Buckets, r.small(b, rp, o))
	}
	r.leaseTTLs(r.Find("lease"), rp, o)
	r.passwords(r.Find("authUsers"), rp, o)
	r.attributes(r.Find("members"), rp, o)
	r.Buckets = append(r.Buckets, r.meta(o))
	if c := r.confState(rp, o); c != nil {
		r.Buckets = append(r.Buckets, *c)
	}
	if v := r.v2Store(rp, o); v != nil {
		r.Buckets = append(r.Buckets, *v)
	}
	if key.Equal == nil || *key.Equal {
		r.Records, err = r.CompareRecords(ctx, o)
	}
	return r, err
}

// TookPart tells whether a member took part in the comparison of a bucket.
func (r *Result) TookPart(bucket string, i int) bool {
	return r.LeftOut[i] == "" && (bucket != "key" || r.Apart[i] == "")
}

// taking lists the positions of members that take part.
func (r *Result) taking() []int {
	var out []int
	for i := range r.Members {
		if r.LeftOut[i] == "" {
			out = append(out, i)
		}
	}
	return out
}

// weigh counts a row and keeps it when it differs.
func (b *Bucket) weigh(take []int, row Row, maxRows int) {
	var have []int
	for _, i := range take {
		if row.Cells[i] != nil {
			have = append(have, i)
		}
	}
	if len(have) == 0 {
		b.Compared--
		return
	}
	equal, same := len(have) == len(take), len(have) == len(take)
	first := row.Cells[have[0]]
	for _, i := range have[1:] {
		c := row.Cells[i]
		if c.Text != first.Text {
			equal, same = false, false
		}
	}
	if equal {
		return
	}
	b.Differ++
	if same {
		b.SameContent++
	}
	if len(have) == 1 {
		b.Only[have[0]]++
	}
	if len(b.Rows) < maxRows {
		row.SameContent = same
		b.Rows = append(b.Rows, row)
	}
}
