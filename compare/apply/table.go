package apply

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// table finds the place of each key by its name, in an open-addressing table: a lookup misses the cache for its slot,
// for the key and for the name.
type table struct {
	slots []tableSlot // a power of two, at most three quarters in use
	used  int
}

// tableSlot is a part of a name's hash and the place of its key, counted from 1; 0 means an empty slot. The part is
// also the name's home in the table.
type tableSlot struct{ tag, at uint32 }

const (
	slotBytes = 8
	// fewSlots is the size of the first table.
	fewSlots = 16
)

// nameSeed is different in each process, so that no input can make all names collide.
var nameSeed = maphash.MakeSeed()

func tagOf(name string) uint32 { return uint32(maphash.String(nameSeed, name)) } //nolint:gosec // a part suffices

// slotsFor is the size of a table for n keys.
func slotsFor(n int) int {
	return max(fewSlots, 1<<bits.Len(uint(max(n, 0)+max(n, 0)/3))) //nolint:gosec // not below 0
}

// isFull reports whether the table has to grow before one more is put in.
func (t *table) isFull() bool { return 4*(t.used+1) > 3*len(t.slots) }

// slot returns the slot of a name, or the empty one where it belongs.
func (k *Keys) slot(name string, tag uint32) *tableSlot {
	mask := uint32(len(k.slots) - 1) //nolint:gosec // memory bounds it
	for i := tag & mask; ; i = (i + 1) & mask {
		s := &k.slots[i]
		if s.at == 0 || s.tag == tag && k.key(s.at-1).Name == name {
			return s
		}
	}
}

// Warmed is how many names Warm takes at most.
const Warmed = 32

// coldSlots is the size of a table from which on Warm is worth its time.
const coldSlots = 1 << 12

// Warm brings what a lookup of the names reads into the cache. One lookup waits for its slot, then for its key, then
// for the name; lookups without a branch between them wait together.
func (k *Keys) Warm(next [][]byte) {
	if k.used == 0 || len(k.slots) < coldSlots {
		return
	}
	mask := uint32(len(k.slots) - 1) //nolint:gosec // memory bounds it
	var at [Warmed]uint32
	var name [Warmed]string
	for i := range min(len(next), Warmed) {
		at[i] = k.slots[uint32(maphash.Bytes(nameSeed, next[i]))&mask].at //nolint:gosec // a part suffices
	}
	for i, n := range at {
		key := k.key(max(n, 1) - 1)
		name[i] = key.Name
		k.warmth += key.Sub
	}
	for i := range name {
		if len(name[i]) > 0 {
			k.warmth += int64(name[i][0])
		}
	}
}

// place returns the place of a key; ok is false if it does not exist.
func (k *Keys) place(name string) (at uint32, ok bool) {
	if k.used == 0 {
		return 0, false
	}
	s := k.slot(name, tagOf(name))
	return s.at - 1, s.at != 0
}

// move puts all slots into a larger table.
func (t *table) move(slots []tableSlot) {
	mask := uint32(len(slots) - 1) //nolint:gosec // memory bounds it
	for _, s := range t.slots {
		if s.at == 0 {
			continue
		}
		i := s.tag & mask
		for slots[i].at != 0 {
			i = (i + 1) & mask
		}
		slots[i] = s
	}
	t.slots = slots
}

// take empties the slot of a name and returns the place that it had; ok is false if there is none. Later names that
// could not be found any more move up.
func (k *Keys) take(name string) (at uint32, ok bool) {
	if k.used == 0 {
		return 0, false
	}
	mask, tag := uint32(len(k.slots)-1), tagOf(name) //nolint:gosec // memory bounds it
	hole := tag & mask
	for {
		s := k.slots[hole]
		if s.at == 0 {
			return 0, false
		}
		if s.tag == tag && k.key(s.at-1).Name == name {
			at = s.at - 1
			break
		}
		hole = (hole + 1) & mask
	}
	for i := (hole + 1) & mask; k.slots[i].at != 0; i = (i + 1) & mask {
		home := k.slots[i].tag & mask
		if (i-home)&mask >= (i-hole)&mask {
			k.slots[hole], hole = k.slots[i], i
		}
	}
	k.slots[hole] = tableSlot{}
	k.used--
	return at, true
}

// sorted returns the names of all keys in order.
func (k *Keys) sorted() []string {
	out := make([]string, 0, k.used)
	for _, s := range k.slots {
		if s.at != 0 {
			out = append(out, k.key(s.at-1).Name)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
