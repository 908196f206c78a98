package replay

import (
	"bytes"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/google/btree"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// keyState is a live key of the model. Values are held as hashes: the model must not grow with their size.
type keyState struct {
	key                  string
	create, mod, version int64
	lease                int64
	vhash                uint64
	// sub is the sub revision of mod.
	sub int64
	// entry is the index of the entry that wrote it, where the model predicts without records; 0 elsewhere. There, head is how the value
	// begins, all of it if whole is true.
	entry uint64
	head  string
	whole bool
	// unsure is set when it cannot be known whether the key exists, and with which content. loose is set when its revisions are
	// not known: which number an entry got depends on all before it. uncounted is set when its version is not known.
	unsure, loose, uncounted bool
}

// write is one record a request writes: a put, or a tombstone when del.
type write struct {
	key   string
	del   bool
	vhash uint64
	lease int64
	// value are the bytes that the request brought; from is the record whose value it takes over instead (ignore_value).
	value []byte
	from  dumpdb.Rev
	// anyValue is set when the value can not be known (ignore_value on a key of unknown value).
	anyValue bool
}

// keyModel is the live key space of one member and the keys attached to each lease.
type keyModel struct {
	tree    *btree.BTreeG[*keyState]
	byLease map[int64]map[string]struct{}
	// unsure counts the keys of which the model does not know whether they exist.
	unsure int
}

func newKeyModel() *keyModel {
	return &keyModel{
		tree:    btree.NewG(32, func(a, b *keyState) bool { return a.key < b.key }),
		byLease: map[int64]map[string]struct{}{},
	}
}

// clone is a model of its own. States are never changed in place, so both share them.
func (k *keyModel) clone() *keyModel {
	out := &keyModel{tree: k.tree.Clone(), byLease: make(map[int64]map[string]struct{}, len(k.byLease)), unsure: k.unsure}
	for id, keys := range k.byLease {
		out.byLease[id] = maps.Clone(keys)
	}
	return out
}

func hashValue(v []byte) uint64 { return xxhash.Sum64(v) }

func (k *keyModel) get(key string) *keyState {
	s, _ := k.tree.Get(&keyState{key: key})
	return s
}

// ascend visits the live keys of a range in order.
func (k *keyModel) ascend(key, end []byte, fn func(*keyState) bool) {
	if len(end) == 0 {
		if s := k.get(string(key)); s != nil {
			fn(s)
		}
		return
	}
	k.tree.AscendGreaterOrEqual(&keyState{key: string(key)}, func(s *keyState) bool {
		return apply.InRange(s.key, key, end) && fn(s)
	})
}

// put sets a key from a record as the database holds it.
func (k *keyModel) put(s keyState) {
	old, replaced := k.tree.ReplaceOrInsert(&s)
	if replaced {
		k.detach(old)
	}
	if s.unsure {
		k.unsure++
	}
	if s.lease != 0 {
		if k.byLease[s.lease] == nil {
			k.byLease[s.lease] = map[string]struct{}{}
		}
		k.byLease[s.lease][s.key] = struct{}{}
	}
}

func (k *keyModel) remove(key string) {
	if old, ok := k.tree.Delete(&keyState{key: key}); ok {
		k.detach(old)
	}
}

// blur makes a key one of which nothing is known.
func (k *keyModel) blur(key string) { k.put(keyState{key: key, unsure: true, loose: true}) }

func (k *keyModel) detach(s *keyState) {
	if s.unsure {
		k.unsure--
	}
	if set := k.byLease[s.lease]; set != nil {
		delete(set, s.key)
		if len(set) == 0 {
			delete(k.byLease, s.lease)
		}
	}
}

// absorb takes a record of the database into the model.
func (k *keyModel) absorb(r *record) {
	if r.del {
		k.remove(r.key)
		return
	}
	k.put(keyState{key: r.key, create: r.create, mod: r.rev.Main, version: r.version, lease: r.lease, vhash: r.vhash, sub: r.rev.Sub})
}

// applyWrites changes the model by predicted writes, for effects the database no longer shows.
func (k *keyModel) applyWrites(ws []write, rev int64) {
	k.predicted(ws, keyState{mod: rev})
}

// predicted changes the model by predicted writes; as gives the revision, the entry, and whether the revision is loose.
func (k *keyModel) predicted(ws []write, as keyState) {
	for _, w := range ws {
		if w.del {
			k.remove(w.key)
			continue
		}
		s := keyState{key: w.key, create: as.mod, mod: as.mod, version: 1, lease: w.lease, vhash: w.vhash, entry: as.entry, loose: as.loose}
		old := k.get(w.key)
		if old != nil {
			s.create, s.version, s.loose, s.uncounted = old.create, old.version+1, s.loose || old.loose, old.uncounted || old.unsure
		}
		if as.entry != 0 {
			s.head, s.whole = headOf(&w, old)
		}
		k.put(s)
	}
}

// maxHead bounds what is kept of a value.
const maxHead = 64

// headOf returns how the value of a write begins, and whether that is all of it.
func headOf(w *write, old *keyState) (head string, whole bool) {
	switch {
	case w.from == dumpdb.Rev{}:
		return string(w.value[:min(len(w.value), maxHead)]), len(w.value) <= maxHead
	case old != nil:
		return old.head, old.whole
	}
	return "", false
}

// relation compares the value with other bytes: below 0, 0 or above 0 as bytes.Compare tells, as far as what was kept of it decides.
func (k *keyState) relation(other []byte) (diff int, known bool) {
	if k.whole {
		return bytes.Compare([]byte(k.head), other), true
	}
	if diff = bytes.Compare([]byte(k.head), other[:min(len(other), len(k.head))]); diff == 0 && k.head != "" && len(other) <= len(k.head) {
		diff = 1 // the value goes on
	}
	return diff, diff != 0
}

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

// deletes tells whether the group holds tombstones only: then nothing but their keys tells which entry wrote them.
func (g *group) deletes() bool {
	return g != nil && !slices.ContainsFunc(g.records, func(r record) bool { return !r.del })
}
