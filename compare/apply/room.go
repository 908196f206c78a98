package apply

import (
	"sync/atomic"
	"unsafe"
)

// Room is the memory in bytes that key spaces may take together. They can exceed it: who fills them asks when to stop.
// It may be used from several goroutines. A nil Room has no bound.
type Room struct{ left atomic.Int64 }

// NewRoom returns a room of so many bytes.
func NewRoom(bytes int64) *Room {
	r := new(Room)
	r.left.Store(bytes)
	return r
}

// Exceeded reports whether the key spaces take more than there is.
func (r *Room) Exceeded() bool { return r != nil && r.left.Load() < 0 }

// What a key space takes, in bytes: a chunk of keys, a place in the table of names, one in the order of names, and an
// attached key of a lease.
const (
	chunkBytes  = int64(unsafe.Sizeof(keyChunk{}))
	placeBytes  = 40
	orderBytes  = 28
	leasedBytes = 32
)

// NewKeys returns an empty key space that takes its memory from the room, with places for about n keys if there is
// room for them.
func (r *Room) NewKeys(n int) *Keys {
	k := NewKeysFor(0)
	if k.room = r; n > 0 {
		if k.takes(int64(n) * placeBytes); !r.Exceeded() {
			k.at, k.places = make(map[string]uint32, n), n
		}
	}
	return k
}

// takes counts what the key space takes more, or less if n is negative.
func (k *Keys) takes(n int64) {
	if k.room != nil {
		k.taken += n
		k.room.left.Add(-n)
	}
}

// Release gives back the room of a key space that is not used any more.
func (k *Keys) Release() {
	k.takes(-k.taken)
	k.room = nil
}
