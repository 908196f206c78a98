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
}

// group is the records of one main revision.
type group struct {
	main    int64
	records []record
	// hole is set when unreadable pages lie before this group: revisions may be missing without meaning anything.
	hole bool
}

// absorb takes a record of the database into a model's keys.
func absorb(keys *apply.Keys, r *record) {
	if r.del {
		keys.Remove(r.key)
		return
	}
	keys.Put(apply.Key{Name: r.key, Create: r.create, Mod: r.rev.Main, Version: r.version, Lease: r.lease, Sum: r.vhash,
		Sub: r.rev.Sub})
}

// deletes tells whether the group holds tombstones only: then nothing but their keys tells which entry wrote them.
func (g *group) deletes() bool {
	return g != nil && !slices.ContainsFunc(g.records, func(r record) bool { return !r.del })
}
