package replay

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// record is one row of bucket key with its value hashed.
type record struct {
	rev             dumpdb.Rev
	key             string
	del             bool
	create, version int64
	lease           int64
	vhash           uint64
	bad             bool
	// marked is true for a tombstone that holds what a put holds. A server writes only the key into one: the record was
	// a put before it was marked.
	marked bool
	// unread is true for a record of which only the revision is known.
	unread bool
}

// group is the records of one main revision.
type group struct {
	main    int64
	records []record
	// hole is set if there are unreadable pages before this group: missing revisions prove nothing then.
	hole  bool
	first [1]record // the memory of records, mostly
}

// begin makes an empty group one with its first record.
func (g *group) begin(r *record, hole bool) {
	g.main, g.hole, g.first[0] = r.rev.Main, hole, *r
	g.records = g.first[:]
}

// deleted reports whether a delete wrote the record.
func (r *record) deleted() bool { return r.del && !r.marked }

// isPut reports whether the group can be what a single put wrote, whatever its content.
func (g *group) isPut() bool { return len(g.records) == 1 && !g.records[0].deleted() }

// absorb applies a record of the database to a model's keys.
func absorb(keys *apply.Keys, r *record) {
	if r.del {
		keys.Remove(r.key)
		return
	}
	keys.Put(apply.Key{Name: r.key, Create: r.create, Mod: r.rev.Main, Version: r.version, Lease: r.lease, Sum: r.vhash,
		Sub: r.rev.Sub})
}

// unnamed reports whether keysOf may leave out keys of the group.
func (g *group) unnamed() bool {
	return g != nil && (len(g.records) > maxNamedKeys ||
		slices.ContainsFunc(g.records, func(r record) bool { return r.deleted() }))
}

// deletes reports whether the group consists of tombstones only: then only their keys identify the entry that wrote
// them.
func (g *group) deletes() bool {
	return g != nil && !slices.ContainsFunc(g.records, func(r record) bool { return !r.deleted() })
}
