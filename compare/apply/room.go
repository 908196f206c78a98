package apply

import (
	"sync/atomic"
	"unsafe"

	"github.com/etcd-medic/etcd-medic/internal/spill"
)

// Room is the memory in bytes that key spaces may take together. They can exceed it: who fills them asks when to stop.
// It may be used from several goroutines. A nil Room has no bound.
type Room struct {
	bytes int64
	left  atomic.Int64
	// area has memory for what does not fit.
	area *spill.Area
}

// NewRoom returns a room of so many bytes. Keys that do not fit go to the area, if there is one.
func NewRoom(bytes int64, area *spill.Area) *Room {
	r := &Room{bytes: bytes, area: area}
	r.left.Store(bytes)
	return r
}

// Exceeded reports whether the key spaces take more than there is.
func (r *Room) Exceeded() bool { return r != nil && r.left.Load() < 0 }

// Fits reports whether there is room for so many bytes more.
func (r *Room) Fits(bytes int64) bool { return r == nil || r.left.Load() >= bytes }

// What a key space takes, in bytes: a chunk of keys, a name in the order of names, and an attached key of a lease.
const (
	chunkBytes  = int(unsafe.Sizeof(keyChunk{}))
	orderBytes  = 28
	leasedBytes = 32
)

// keptPart is the part of a room that is kept for what cannot go to the area: the order of names, the keys of leases.
const keptPart = 4

// piece returns memory of the area, if the room has none for so many bytes; otherwise nil.
func (r *Room) piece(bytes int) []byte {
	if r == nil || r.area == nil || r.left.Load()-int64(bytes) >= r.bytes/keptPart {
		return nil
	}
	return r.area.Take(bytes)
}

// NewKeys returns an empty key space that takes its memory from the room, with places for about n keys. If there is no
// room for them, it is exceeded from the beginning.
func (r *Room) NewKeys(n int) *Keys {
	k := NewKeysFor(0)
	if k.room = r; n <= 0 {
		return k
	}
	slots := slotsFor(n)
	bytes := slots * slotBytes
	p := r.piece(bytes)
	if p == nil && !r.Fits(int64(bytes)) {
		k.takes(int64(bytes))
		return k
	}
	k.growInto(p, slots)
	return k
}

// takes counts what the key space takes more, or less if n is negative.
func (k *Keys) takes(n int64) {
	if k.room != nil {
		k.taken += n
		k.room.left.Add(-n)
	}
}

// Release gives back the room of a key space that is not used any more. Its names stay valid.
func (k *Keys) Release() {
	k.takes(-k.taken)
	if k.room == nil {
		return
	}
	for i, c := range k.chunks {
		if k.inArea[i] {
			k.room.area.Give(unsafe.Slice((*byte)(unsafe.Pointer(c)), chunkBytes)) //nolint:gosec // the piece it is in
		}
	}
	k.room.area.Give(k.slotsPiece)
	*k = Keys{}
}

// newChunk adds memory for keys.
func (k *Keys) newChunk() {
	p := k.room.piece(chunkBytes)
	c := (*keyChunk)(unsafe.Pointer(unsafe.SliceData(p))) //nolint:gosec // the piece is as large
	if p == nil {
		k.takes(int64(chunkBytes))
		c = new(keyChunk)
	}
	k.chunks, k.inArea = append(k.chunks, c), append(k.inArea, p != nil)
}

// grow makes the table of names larger.
func (k *Keys) grow(slots int) { k.growInto(k.room.piece(slots*slotBytes), slots) }

// growInto is grow with memory of the area, nil for none.
func (k *Keys) growInto(piece []byte, slots int) {
	before, given := len(k.slots), k.slotsPiece
	if k.slotsPiece = piece; piece != nil {
		k.move(unsafe.Slice((*tableSlot)(unsafe.Pointer(unsafe.SliceData(piece))), slots)) //nolint:gosec // as large
	} else {
		k.takes(int64(slots) * slotBytes)
		k.move(make([]tableSlot, slots))
	}
	if given != nil {
		k.room.area.Give(given)
	} else {
		k.takes(-int64(before) * slotBytes)
	}
}
