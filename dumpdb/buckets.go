package dumpdb

import (
	"fmt"
	"slices"
	"strings"
)

// bucketHeader is the size of root page and sequence before an inline page.
const bucketHeader = 16

// Bucket is one top-level bucket.
type Bucket struct {
	Name string
	Root uint64
	// Sequence is bbolt's per-bucket counter; etcd never uses it.
	Sequence uint64
	// Inline is true if the bucket is stored in its parent's leaf.
	Inline bool
	// Place is the element in the parent's leaf; for an inline bucket it is the start of its page.
	Place
}

// bucket is a Bucket with its page, if inline.
type bucket struct {
	Bucket
	inline []byte
}

// Buckets lists the top-level buckets in name order, and the damage in the root tree.
func (db *DB) Buckets() ([]Bucket, []*DamageError) {
	out := make([]Bucket, len(db.buckets))
	for i := range db.buckets {
		out[i] = db.buckets[i].Bucket
	}
	return out, slices.Clone(db.rootDamage)
}

// find returns a bucket by name. A nested one, which etcd never creates, has the name parent/child.
func (db *DB) find(name string) (*bucket, bool) {
	if b, ok := db.top(name); ok {
		return b, true
	}
	parts := strings.Split(name, "/")
	b, ok := db.top(parts[0])
	for _, part := range parts[1:] {
		if !ok {
			break
		}
		b, ok = db.nested(b, part)
	}
	return b, ok
}

func (db *DB) top(name string) (*bucket, bool) {
	i, ok := db.byName[name]
	if !ok {
		return nil, false
	}
	return &db.buckets[i], true
}

func (db *DB) nested(parent *bucket, name string) (found *bucket, ok bool) {
	s := db.newScan(db.f.ctx, parent.Name)
	s.want = span{[]byte(name), append([]byte(name), 0)}
	s.onDamage = func(*DamageError) bool { return true }
	s.onLeaf = func(l *leaf) bool {
		for _, e := range l.elems {
			if b, dmg := parseBucket(l, e); dmg == nil && b.Name == name {
				found = &b
			}
		}
		return found == nil
	}
	s.walk(parent)
	return found, found != nil
}

// maxBuckets bounds the top-level buckets in memory besides those of etcd, which has ten; maxRootDamage bounds the
// damaged places of the root tree.
const (
	maxBuckets    = 1000
	maxRootDamage = 1000
)

// loadBuckets reads the root tree once; it is small on every etcd file.
func (db *DB) loadBuckets() {
	s := db.newScan(db.f.ctx, "")
	moreBuckets, moreDamage := 0, 0
	s.onDamage = func(d *DamageError) bool {
		if len(db.rootDamage) < maxRootDamage {
			db.rootDamage = append(db.rootDamage, d)
		} else {
			moreDamage++
		}
		return true
	}
	s.onLeaf = func(l *leaf) bool {
		for _, e := range l.elems {
			b, dmg := parseBucket(l, e)
			switch {
			case dmg != nil:
				s.damage(dmg, only(e.key))
			case len(db.buckets) >= maxBuckets && !slices.Contains(etcdBuckets, b.Name):
				moreBuckets++
			default:
				db.buckets = append(db.buckets, b)
			}
		}
		return true
	}
	s.tree(db.meta.Root)
	db.leftOut(moreBuckets, moreDamage)
	db.rootUsed = s.used
	db.byName = make(map[string]int, len(db.buckets))
	for i := range db.buckets {
		if _, ok := db.byName[db.buckets[i].Name]; !ok {
			db.byName[db.buckets[i].Name] = i
		}
	}
}

// leftOut adds damage that stands for the buckets and the damaged places beyond the bounds.
func (db *DB) leftOut(buckets, damage int) {
	if buckets > 0 {
		db.rootDamage = append(db.rootDamage, &DamageError{Place: db.place(db.meta.Root), Kind: DamageBuckets,
			Expected: fmt.Sprintf("%d buckets, as etcd creates", len(etcdBuckets)),
			Observed: fmt.Sprintf("%d; all but the first %d are not examined", len(db.buckets)+buckets,
				len(db.buckets))})
	}
	if damage > 0 {
		db.rootDamage = append(db.rootDamage, &DamageError{Place: db.place(db.meta.Root), Kind: DamagePage,
			Expected: "a list of buckets", Observed: fmt.Sprintf("%d more damaged places", damage)})
	}
}

// maxInline bounds an inline bucket: bbolt writes at most a quarter of a page there, and a page has 64 KiB at most.
const maxInline = 64 << 10

// parseBucket decodes a bucket element of a leaf.
func parseBucket(l *leaf, e elem) (bucket, *DamageError) {
	b := bucket{Bucket: Bucket{Name: string(e.key), Place: l.at(e)}}
	switch {
	case e.flags&flagBucket == 0:
		return b, &DamageError{Place: b.Place, Kind: DamageRow, Expected: "a bucket", Observed: "a plain row " +
			showKey(e.key)}
	case len(e.value) < bucketHeader:
		return b, &DamageError{Place: b.Place, Kind: DamageRow, Expected: "a bucket of 16 bytes or more",
			Observed: fmt.Sprintf("%d bytes", len(e.value))}
	}
	b.Root, b.Sequence = le.Uint64(e.value), le.Uint64(e.value[8:])
	if b.Root != 0 {
		return b, nil
	}
	if len(e.value) < bucketHeader+headerSize {
		return b, &DamageError{Place: b.Place, Kind: DamageRow, Expected: "an inline bucket of 32 bytes or more",
			Observed: fmt.Sprintf("%d bytes", len(e.value))}
	}
	if len(e.value) > maxInline {
		return b, &DamageError{Place: b.Place, Kind: DamageRow,
			Expected: fmt.Sprintf("an inline bucket of at most %d bytes", maxInline),
			Observed: fmt.Sprintf("%d bytes", len(e.value))}
	}
	b.Inline, b.inline = true, slices.Clone(e.value[bucketHeader:])
	b.Offset += int64(len(e.key) + bucketHeader)
	return b, nil
}

// etcdBuckets are the buckets that every server since 3.0 creates at its start. It creates cluster with the first
// cluster version.
var etcdBuckets = []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", "lease", "members",
	"members_removed", "meta"}

// MissingBuckets names the buckets that every etcd db has and this one lacks. A db that no server has used yet may lack
// some.
func (db *DB) MissingBuckets() []string {
	var out []string
	for _, name := range etcdBuckets {
		if _, ok := db.find(name); !ok {
			out = append(out, name)
		}
	}
	return out
}
