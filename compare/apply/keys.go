package apply

import (
	"bytes"
	"maps"
	"slices"
	"unsafe"

	"github.com/google/btree"
	"github.com/zeebo/xxh3"
)

// Rev is the revision of a record: the main revision of its request, and its position among the request's records.
type Rev struct{ Main, Sub int64 }

// Key is a live key, as far as it is known. Values are kept as hashes, so that a model does not grow with their size.
type Key struct {
	Name                 string
	Create, Mod, Version int64
	Lease                int64
	// Sum is SumOf the value, Sub the sub revision of Mod.
	Sum uint64
	Sub int64
	// Entry is the index of the entry that wrote the key, if keys are predicted without records; otherwise 0. Head is
	// then the start of the value, or all of it if Whole is true.
	Entry uint64
	Head  string
	Whole bool
	// Unsure is set if it is unknown whether the key exists, and with which content. Loose is set if its revisions are
	// unknown, since the revision of an entry depends on all earlier ones. Uncounted is set if its version is unknown.
	Unsure, Loose, Uncounted bool
}

// Write is one record that a request writes: a put, or a tombstone if Delete is set.
type Write struct {
	Key    string
	Delete bool
	Sum    uint64
	Lease  int64
	// Value is the value in the request. From is the record whose value it keeps instead (ignore_value).
	Value []byte
	From  Rev
}

// SumOf returns the hash of a value.
func SumOf(value []byte) uint64 { return xxh3.Hash(value) }

// Keys are the live keys of one member, and the keys attached to each lease. A key space of millions of keys takes few
// objects, so that the collector has little to follow.
type Keys struct {
	// table has the place of each key in chunks. The chunks are never moved, and free are the places of removed keys.
	table
	chunks []*keyChunk
	free   []uint32
	names  *names
	// tree has the names in order. It is nil until someone asks for the order, which most logs never need.
	tree    *btree.BTreeG[string]
	byLease map[int64]map[string]struct{}
	unsure  int
	// room is where the memory is taken from, nil if it is not counted; taken is how much, in bytes. inArea is true for
	// chunks that are in the area of the room, and slotsPiece is the memory of the table if that is. The collector does
	// not look into an area: what keys there refer to must be in it, or be held.
	room       *Room
	taken      int64
	inArea     []bool
	slotsPiece []byte
	// warmth keeps the reads of Warm from being left out.
	warmth int64
}

type keyChunk [1 << chunkBits]Key

const chunkBits = 8

// NewKeys returns an empty key space.
func NewKeys() *Keys { return NewKeysFor(0) }

// NewKeysFor returns an empty key space with room for about n keys.
func NewKeysFor(n int) *Keys {
	return &Keys{table: table{slots: make([]tableSlot, slotsFor(n))}, names: new(names),
		byLease: map[int64]map[string]struct{}{}}
}

// Clone returns a copy, whose memory is not counted.
func (k *Keys) Clone() *Keys {
	out := &Keys{table: table{slices.Clone(k.slots), k.used}, free: slices.Clone(k.free), unsure: k.unsure,
		names:   &names{held: slices.Clone(k.names.held), live: k.names.live, taken: k.names.taken},
		byLease: make(map[int64]map[string]struct{}, len(k.byLease)), inArea: make([]bool, len(k.chunks))}
	for _, c := range k.chunks {
		own := *c
		out.chunks = append(out.chunks, &own)
	}
	if k.tree != nil {
		out.tree = k.tree.Clone()
	}
	for id, keys := range k.byLease {
		out.byLease[id] = maps.Clone(keys)
	}
	return out
}

// Len returns the number of live keys.
func (k *Keys) Len() int { return k.used }

// Unsure returns the number of keys whose existence is unknown.
func (k *Keys) Unsure() int { return k.unsure }

// Get returns a key, nil if it does not exist. It is valid until the keys are changed.
func (k *Keys) Get(name string) *Key {
	if at, ok := k.place(name); ok {
		return k.key(at)
	}
	return nil
}

// Find is Get for a name in bytes.
func (k *Keys) Find(name []byte) *Key {
	return k.Get(unsafe.String(unsafe.SliceData(name), len(name))) //nolint:gosec // it is not kept
}

func (k *Keys) key(at uint32) *Key { return &k.chunks[at>>chunkBits][at&(1<<chunkBits-1)] }

// newPlace returns a place for a new key.
func (k *Keys) newPlace() uint32 {
	if n := len(k.free); n > 0 {
		at := k.free[n-1]
		k.free = k.free[:n-1]
		return at
	}
	at := k.used
	if at>>chunkBits == len(k.chunks) {
		k.newChunk()
	}
	return uint32(at) //nolint:gosec // memory bounds it
}

// ordered returns the names of the keys in order.
func (k *Keys) ordered() *btree.BTreeG[string] {
	if k.tree == nil {
		k.tree = btree.NewOrderedG[string](32)
		k.takes(int64(k.used) * orderBytes)
		for _, name := range k.sorted() {
			k.tree.ReplaceOrInsert(name)
		}
	}
	return k.tree
}

// All visits the live keys in order until visit returns false. It must not change them.
func (k *Keys) All(visit func(*Key) bool) {
	k.ordered().Ascend(func(name string) bool { return visit(k.Get(name)) })
}

// Range visits the live keys of a range in order until visit returns false. It must not change them.
func (k *Keys) Range(key, end []byte, visit func(*Key) bool) {
	if len(end) == 0 {
		if s := k.Get(string(key)); s != nil {
			visit(s)
		}
		return
	}
	k.ordered().AscendGreaterOrEqual(string(key), func(name string) bool {
		return InRange(name, key, end) && visit(k.Get(name))
	})
}

// OfLease lists the keys attached to a lease, in order.
func (k *Keys) OfLease(id int64) []string {
	return slices.Sorted(maps.Keys(k.byLease[id]))
}

// Attached reports whether a key is attached to a lease.
func (k *Keys) Attached(id int64, key string) bool {
	_, ok := k.byLease[id][key]
	return ok
}

// CountOfLease returns the number of keys attached to a lease.
func (k *Keys) CountOfLease(id int64) int { return len(k.byLease[id]) }

// Put sets a key.
func (k *Keys) Put(s Key) {
	tag := tagOf(s.Name)
	slot := k.slot(s.Name, tag)
	if slot.at != 0 {
		old := k.key(slot.at - 1)
		k.detach(slot.at-1, old)
		s.Name = old.Name
	} else {
		slot = k.add(&s, tag)
	}
	at := slot.at - 1
	k.attach(at, &s)
	*k.key(at) = s
}

// add makes a place for a new key, with its own copy of the name.
func (k *Keys) add(s *Key, tag uint32) *tableSlot {
	if k.names.sparse() {
		k.compact()
	}
	if k.isFull() {
		k.grow(2 * len(k.slots))
	}
	slot := k.slot(s.Name, tag)
	slot.tag, slot.at = tag, k.newPlace()+1
	k.used++
	var took int
	s.Name, took = k.names.keep(s.Name, k.room)
	if k.takes(int64(took)); k.tree != nil {
		k.tree.ReplaceOrInsert(s.Name)
	}
	return slot
}

// attach counts a new state of the key at a place.
func (k *Keys) attach(at uint32, s *Key) {
	if s.Unsure {
		k.unsure++
	}
	if s.Head != "" {
		took := len(s.Head)
		if k.inArea[at>>chunkBits] {
			s.Head, took = k.names.keep(s.Head, k.room)
		}
		k.takes(int64(took))
	}
	if s.Lease != 0 {
		if k.byLease[s.Lease] == nil {
			k.byLease[s.Lease] = map[string]struct{}{}
		}
		k.byLease[s.Lease][s.Name] = struct{}{}
		k.takes(leasedBytes)
	}
}

// compact keeps only the names of the live keys.
func (k *Keys) compact() {
	fresh := k.room.NewKeys(k.used)
	for _, s := range k.slots {
		if s.at != 0 {
			fresh.Put(*k.key(s.at - 1))
		}
	}
	k.Release()
	*k = *fresh
}

// Remove deletes a key.
func (k *Keys) Remove(name string) {
	at, ok := k.take(name)
	if !ok {
		return
	}
	old := k.key(at)
	k.detach(at, old)
	if k.tree != nil {
		k.tree.Delete(name)
	}
	k.names.live -= len(old.Name)
	*old = Key{}
	k.free = append(k.free, at)
}

// Forget marks a key as completely unknown.
func (k *Keys) Forget(name string) { k.Put(Key{Name: name, Unsure: true, Loose: true}) }

// detach is the opposite of attach.
func (k *Keys) detach(at uint32, s *Key) {
	if s.Unsure {
		k.unsure--
	}
	switch {
	case s.Head == "":
	case k.inArea[at>>chunkBits]:
		k.names.live -= len(s.Head)
	default:
		k.takes(-int64(len(s.Head)))
	}
	if set := k.byLease[s.Lease]; set != nil {
		delete(set, s.Name)
		k.takes(-leasedBytes)
		if len(set) == 0 {
			delete(k.byLease, s.Lease)
		}
	}
}

// Write changes the keys by the records of a request. at has the main revision, the entry if there are no records, and
// whether the revision is loose. It returns the keys after each record, with only the name set for a deleted key.
func (k *Keys) Write(ws []Write, at Key) []Key {
	out := make([]Key, len(ws))
	for i := range ws {
		w := &ws[i]
		if w.Delete {
			k.Remove(w.Key)
			out[i] = Key{Name: w.Key}
			continue
		}
		s := Key{Name: w.Key, Create: at.Mod, Mod: at.Mod, Sub: int64(i), Version: 1, Lease: w.Lease, Sum: w.Sum,
			Entry: at.Entry, Loose: at.Loose}
		old := k.Get(w.Key)
		if old != nil {
			s.Create, s.Version, s.Loose, s.Uncounted = old.Create, old.Version+1, s.Loose || old.Loose,
				old.Uncounted || old.Unsure
		}
		if at.Entry != 0 {
			s.Head, s.Whole = headOf(w, old)
		}
		k.Put(s)
		out[i] = s
	}
	return out
}

// maxHead bounds the kept start of a value, in bytes.
const maxHead = 64

// headOf returns the start of the value of a write, and whether that is the whole value.
func headOf(w *Write, old *Key) (head string, whole bool) {
	switch {
	case w.From == Rev{}:
		return string(w.Value[:min(len(w.Value), maxHead)]), len(w.Value) <= maxHead
	case old != nil:
		return old.Head, old.Whole
	}
	return "", false
}

// relation compares the value with other bytes like bytes.Compare. known is false if the kept start of the value does
// not decide.
func (k *Key) relation(other []byte) (diff int, known bool) {
	if k.Whole {
		return bytes.Compare([]byte(k.Head), other), true
	}
	if diff = bytes.Compare([]byte(k.Head), other[:min(len(other), len(k.Head))]); diff == 0 && k.Head != "" &&
		len(other) <= len(k.Head) {
		diff = 1 // the value is longer
	}
	return diff, diff != 0
}
