package dumpdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
)

// Usage says which keys fill bucket key.
type Usage struct {
	Total Group
	// Prefixes are the groups by the first parts of the key, Kinds those by Kubernetes kind ("v1 Pod"). Both are sorted
	// by Bytes, largest first.
	Prefixes, Kinds []Group
	// Largest are the biggest records, Busiest the keys with the most records.
	Largest, Busiest []KeyUsage
	// Undecodable counts records that do not decode; they are left out.
	Undecodable int64
}

// Group counts the records of one prefix or kind.
type Group struct {
	Name string
	// Keys counts live keys, Revisions all records including tombstones. Bytes is their stored size, LiveBytes that of
	// the newest records of live keys.
	Keys, Revisions, Tombstones int64
	Bytes, LiveBytes            int64
	// MaxValue is the largest value.
	MaxValue int64
}

// KeyUsage is one key in a ranking.
type KeyUsage struct {
	Key       []byte
	Rev       Rev
	Bytes     int64
	Revisions int64
}

// maxRanked is the length of the rankings.
const maxRanked = 20

// usageKey is the newest record of a key, so that a tombstone can remove the key from its groups.
type usageKey struct {
	prefix, kind *Group
	bytes        int64 // of the newest record; -1 if it is a tombstone
	records      int64
	place        Place
	rev          Rev
}

type usageCounter struct {
	depth           int
	use             Usage
	prefixes, kinds map[string]*Group
	keys            map[keyHash]*usageKey
}

// Usage counts the records that q selects by Kubernetes kind and by the first depth parts of their key, which end with
// '/'. It ignores Live and Deleted. It returns damage as [Damages] together with what it could read.
func (db *DB) Usage(ctx context.Context, q Query, depth int) (*Usage, error) {
	u := usageCounter{depth: depth, prefixes: map[string]*Group{}, kinds: map[string]*Group{},
		keys: map[keyHash]*usageKey{}}
	var damage []*DamageError
	for r, err := range db.scanQuery(ctx, q) {
		var d *DamageError
		switch {
		case errors.As(err, &d):
			damage = append(damage, d)
		case err != nil:
			return nil, err
		case r.Err != nil:
			u.use.Undecodable++
		default:
			u.add(&r)
		}
	}
	u.rank(db)
	return &u.use, damagesOrNil(damage)
}

func (u *usageCounter) add(r *Revision) {
	h := hashKey(r.KV.Key)
	k := u.keys[h]
	if k == nil {
		k = &usageKey{prefix: group(u.prefixes, string(KeyPrefix(r.KV.Key, u.depth))), bytes: -1}
		u.keys[h] = k
	}
	u.forget(k)
	if !r.Tombstone || k.kind == nil {
		k.kind = group(u.kinds, KindName(r.KV.Value))
	}
	size := int64(len(r.RawKey) + len(r.Raw))
	k.records++
	k.place, k.rev = r.Place, r.Rev
	for _, g := range u.groups(k) {
		g.Revisions++
		g.Bytes += size
		g.MaxValue = max(g.MaxValue, int64(len(r.KV.Value)))
		if r.Tombstone {
			g.Tombstones++
		} else {
			g.Keys++
			g.LiveBytes += size
		}
	}
	k.bytes = size
	if r.Tombstone {
		k.bytes = -1
	}
	u.large(r, size)
}

func (u *usageCounter) groups(k *usageKey) []*Group { return []*Group{&u.use.Total, k.prefix, k.kind} }

// forget subtracts the newest record so far of a live key from its groups; a later record may be of another kind.
func (u *usageCounter) forget(k *usageKey) {
	if k.bytes < 0 {
		return
	}
	for _, g := range u.groups(k) {
		g.Keys--
		g.LiveBytes -= k.bytes
	}
}

// large keeps the biggest records in descending order.
func (u *usageCounter) large(r *Revision, size int64) {
	l := u.use.Largest
	if len(l) == maxRanked && l[maxRanked-1].Bytes >= size {
		return
	}
	at, _ := slices.BinarySearchFunc(l, size, func(k KeyUsage, n int64) int {
		if k.Bytes >= n {
			return -1
		}
		return 1
	})
	l = slices.Insert(l, at, KeyUsage{Key: bytes.Clone(r.KV.Key), Rev: r.Rev, Bytes: size, Revisions: 1})
	u.use.Largest = l[:min(len(l), maxRanked)]
}

// rank sorts the groups and finds the busiest keys, whose names are read again.
func (u *usageCounter) rank(db *DB) {
	u.use.Prefixes, u.use.Kinds = bySize(u.prefixes), bySize(u.kinds)
	busy := make([]*usageKey, 0, len(u.keys))
	for _, k := range u.keys {
		busy = append(busy, k)
	}
	slices.SortFunc(busy, func(a, b *usageKey) int {
		return cmp.Or(cmp.Compare(b.records, a.records), cmp.Compare(a.rev.Main, b.rev.Main),
			cmp.Compare(a.rev.Sub, b.rev.Sub))
	})
	for _, k := range busy[:min(len(busy), maxRanked)] {
		u.use.Busiest = append(u.use.Busiest, KeyUsage{Key: db.keyAt(k.place), Rev: k.rev, Bytes: max(k.bytes, 0),
			Revisions: k.records})
	}
}

func bySize(m map[string]*Group) []Group {
	out := make([]Group, 0, len(m))
	for _, g := range m {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes),
			cmp.Compare(a.Name, b.Name))
	})
	return out
}

func group(m map[string]*Group, name string) *Group {
	g := m[name]
	if g == nil {
		g = &Group{Name: name}
		m[name] = g
	}
	return g
}

// KeyPrefix returns the key up to and including its slash number depth, not counting one at the start; the whole key if
// it has fewer.
func KeyPrefix(key []byte, depth int) []byte {
	at := 0
	for range depth {
		skip := 0
		if at == 0 && len(key) > 0 && key[0] == '/' {
			skip = 1
		}
		n := bytes.IndexByte(key[at+skip:], '/')
		if n < 0 {
			return key
		}
		at += skip + n + 1
	}
	return key[:at]
}

// KindName returns the Kubernetes kind of a value, such as "v1 Pod", or "encrypted" with its provider; "" if the value
// is not a Kubernetes object.
func KindName(value []byte) string {
	o, ok := ParseKube(value)
	switch {
	case !ok:
		return ""
	case o.Encoding == "encrypted":
		return "encrypted " + o.Provider
	}
	return o.APIVersion + " " + o.Kind
}
