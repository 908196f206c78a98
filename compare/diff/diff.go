// Package diff compares the content of several databases, bucket by bucket, at the highest index that all of them have
// applied.
//
// Normal differences between healthy members are ignored or listed separately: page layout, progress of a compaction,
// the salt of password hashes of proposers up to 3.4, lease TTLs that a server raised to its own minimum, and the rows
// of bucket meta.
package diff

import (
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// Result is the comparison of all members.
type Result struct {
	Members []*evidence.Member
	// Common is the highest index up to which all compared members have applied key writes, 0 if unknown. The other
	// buckets are compared at the lowest consistent index, which up to 3.4 can be lower.
	Common uint64
	lowest uint64
	// Revs are the members' revisions at Common, 0 for members whose keys were not compared.
	Revs []int64
	// Apart are the members whose keys were not compared, by position, with the reason: their database cannot be
	// reconstructed at the common index.
	KeysNotCompared map[int]string
	// Compact is the highest compact revision among the members.
	Compact int64
	// NotCompared are the members that were not compared at all, by position, with the reason.
	NotCompared map[int]string
	// otherLog are those among them whose indexes are of another log.
	otherLog []int
	Note     string
	Buckets  []Bucket
	// Records compares the records of bucket key one by one; nil if that was not done.
	Records *Records
	// Passwords are the users whose password hashes differ.
	Passwords []Password
	// places are the first keys that differ, for KeyRows.
	places []keyPlaces
	// judged are the revisions above which the replay compares the records of each member with their entries.
	judged []int64
	// parted are the members whose logs differ, kept the records of keys that members lack.
	parted map[int]bool
	kept   kept
	// apart is what RecordsApart has found, nil before.
	apart *Records
}

// Bucket is one bucket over all members.
type Bucket struct {
	Name string
	// Equal is unknown if the bucket could not be compared; Reason says why. Next to No it says why the
	// other rows could not be compared.
	Equal  release.Answer
	Reason string
	// Compared counts distinct row keys. Rows are the first that differ, for bucket key also the first ones that the
	// replay does not judge. Only counts the rows that only one member has, by member. Differ counts all
	// rows that differ, SameContent those of them that differ only in revision numbers.
	Compared, Differ, SameContent int
	Only                          []int
	Rows                          []Row
	// Moved counts rows whose difference is explained by an entry that only one of two members has applied. Limits
	// names members whose rows could not all be compared, while those of others were.
	Moved  int
	Limits string
	// Normal are rows with a normal difference between healthy members; they are not counted.
	Normal []Row
}

// Row is a row that differs. Cells are by member, nil if the member does not have the row. Out are members whose
// version cannot be compared with any other, because they have applied fewer or more entries.
type Row struct {
	Key   []byte
	Kind  RowKind
	Out   []int
	Cells []*Cell
	// SameContent is true if the cells differ only in revision numbers.
	SameContent bool
}

// LastWrite returns the revision at which each member that has the key wrote it, 0 if they differ or the values are
// equal.
func (r *Row) LastWrite() (rev int64) {
	for _, c := range r.Cells {
		switch {
		case c == nil || c.Mod == rev:
		case rev > 0 || r.SameContent:
			return 0
		default:
			rev = c.Mod
		}
	}
	return rev
}

// RowKind says which part of a row is compared.
type RowKind string

// Parts that are compared separately: the TTL of a lease, the password of a user, and the attributes that a member
// publishes.
const (
	WholeRow      RowKind = ""
	TTLRow        RowKind = "TTL"
	PasswordRow   RowKind = "password"
	AttributesRow RowKind = "attributes"
)

// Cell is one member's version of a row: revisions and value for bucket key, otherwise a description in Text.
type Cell struct {
	Mod, Create, Version, Lease int64
	// Sub is the place of the record among those of its transaction.
	Sub         int64
	ValueLen    int
	ValueDigest string
	Value       []byte
	// Object names the Kubernetes object in the value; its Kind is "" for other values.
	Object dumpdb.KubeObject
	Text   string
}

// Options tune Run.
type Options struct {
	// MaxRows bounds the rows listed per bucket; all are counted. 0 means 50. Of bucket key as many are listed that the
	// replay does not judge.
	MaxRows int
	// Places is how many differing keys KeyRows can list later; 0 means MaxRows.
	Places int
	// Values keeps the values of differing rows.
	Values bool
	// MaxMarks bounds the live keys in memory at a time, over all members, at about 80 bytes plus the key each. More
	// keys need more passes over the databases. 0 means 1,000,000.
	MaxMarks int64
}

const defaultMaxMarks = 1_000_000

// Find returns the bucket with a name, nil if it was not compared.
func (r *Result) Find(name string) *Bucket {
	for i := range r.Buckets {
		if r.Buckets[i].Name == name {
			return &r.Buckets[i]
		}
	}
	return nil
}

// Align finds the common index and each member's revision there. It compares nothing yet.
func Align(members []*evidence.Member, rp *replay.Result) *Result {
	r := &Result{Members: members, Revs: make([]int64, len(members)), NotCompared: map[int]string{},
		KeysNotCompared: map[int]string{}, Compact: -1, parted: parted(rp), judged: judged(members, rp)}
	level := commonLevel{r, rp}
	level.find()
	return r
}

// Run compares the databases of all members. rp may be nil if there is no log; the databases are then aligned by
// revision.
func Run(ctx context.Context, members []*evidence.Member, rp *replay.Result, o Options) (*Result, error) {
	if o.MaxRows == 0 {
		o.MaxRows = 50
	}
	if o.MaxMarks == 0 {
		o.MaxMarks = defaultMaxMarks
	}
	r := Align(members, rp)
	key, err := keyComparer{r}.compare(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Buckets = append(r.Buckets, key)
	rows := r.rows(rp, o)
	for _, b := range smallBuckets {
		r.Buckets = append(r.Buckets, rows.small(b))
	}
	rows.leaseTTLs(r.Find("lease"))
	rows.passwords(r.Find("authUsers"))
	rows.attributes(r.Find("members"))
	r.Buckets = append(r.Buckets, rows.meta())
	if c := rows.confState(); c != nil {
		r.Buckets = append(r.Buckets, *c)
	}
	if v := rows.v2Store(); v != nil {
		r.Buckets = append(r.Buckets, *v)
	}
	if !key.Equal.Excluded() {
		r.Records, err = r.CompareRecords(ctx, o)
	}
	return r, err
}

// TookPart reports whether a bucket of a member was compared.
func (r *Result) TookPart(bucket string, i int) bool {
	return r.NotCompared[i] == "" && (bucket != "key" || r.KeysNotCompared[i] == "")
}

// tooFew says why no two databases are compared.
func (r *Result) tooFew() string {
	if len(r.otherLog) > 0 {
		i := r.otherLog[0]
		return r.Members[i].Label() + ": " + r.NotCompared[i]
	}
	return "fewer than two databases can be read"
}

// taking returns the positions of the members to compare.
func (r *Result) taking() []int {
	var out []int
	for i := range r.Members {
		if r.NotCompared[i] == "" {
			out = append(out, i)
		}
	}
	return out
}

// weigh counts a row, and keeps it if it differs.
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
	first := row.Cells[have[0]]
	if len(have) == len(take) && !slices.ContainsFunc(have, func(i int) bool {
		return row.Cells[i].Text != first.Text
	}) {
		return
	}
	b.Differ++
	if len(have) == 1 {
		b.Only[have[0]]++
	}
	if len(b.Rows) < maxRows {
		b.Rows = append(b.Rows, row)
	}
}
