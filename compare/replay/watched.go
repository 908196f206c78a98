package replay

import (
	"bytes"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// watchedKey finds the entries that can change the key of Options.Watch. A revoke of its lease deletes the key
// without naming it.
type watchedKey struct {
	// name is nil if no key is watched.
	name []byte
	// leases are those that the key may have after the entries so far.
	leases map[int64]bool
	// changes is true if the entry being judged can change the key.
	changes bool
}

// look reads the next entry, before the models execute it.
func (k *watchedKey) look(index uint64, r *dumplog.Request, sims []*sim) {
	k.changes = false
	switch {
	case k.name == nil:
	case r.LeaseRevoke != nil:
		id := r.LeaseRevoke.ID
		k.changes = k.leases[id] || slices.ContainsFunc(sims, func(s *sim) bool {
			return s != nil && index > s.meet.index && s.Keys.Attached(id, string(k.name))
		})
		delete(k.leases, id)
	case touchesKey(r, k.name):
		k.changes = true
		k.attach(r)
	}
}

// attach keeps the leases with which a request puts the key. A transaction may not do what it names.
func (k *watchedKey) attach(r *dumplog.Request) {
	if r.Kind != dumplog.KindTxn && (r.Put == nil || !r.Put.IgnoreLease) {
		clear(k.leases)
	}
	r.EachOp(func(op dumplog.RequestOp) {
		if op.Put != nil && op.Put.Lease != 0 && bytes.Equal(op.Put.Key, k.name) {
			if k.leases == nil {
				k.leases = map[int64]bool{}
			}
			k.leases[op.Put.Lease] = true
		}
	})
}

// touchesKey reports whether a request names a key that it can change.
func touchesKey(r *dumplog.Request, key []byte) bool {
	return apply.WritesKeys(r.Kind) && r.Touches(key, append(key[:len(key):len(key)], 0))
}
