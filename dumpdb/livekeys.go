package dumpdb

// liveKey is the newest record of a live key.
type liveKey struct {
	// high and low are the parts of the key's hash that the slot does not have.
	high                  uint64
	main, create, version int64
	// where is the offset of the record in the file. The highest bit is set if its lease does not exist.
	where uint64
	// back is how many pages before that offset its page begins: a record may be on an overflow page.
	back, low uint32
}

const leaseMissing = 1 << 63

// place returns where the record is.
func (k *liveKey) place(pageSize int) Place {
	at := k.where &^ leaseMissing
	return Place{Page: at/uint64(pageSize) - uint64(k.back), Offset: int64(at)}
}

// liveKeys has the newest record of every live key, in an open-addressing table. Every record of the bucket is looked
// up here, and nearly every lookup misses the cache, so slots are small. The records are kept separately, in chunks
// that are never copied; those of deleted keys are reused.
type liveKeys struct {
	slots  []liveSlot // a power of two, at most three quarters in use
	used   int
	chunks []*liveChunk
	// next is the number of records that were ever in use, free are those of deleted keys.
	next uint32
	free []uint32
	// warmth keeps the reads of warm from being left out.
	warmth uint64
}

// liveSlot is a part of a key's hash and the position of its record, counted from 1; 0 means an empty slot. The part is
// also the key's home in the table.
type liveSlot struct{ tag, at uint32 }

type liveChunk [1 << chunkBits]liveKey

const (
	firstSlots = 1 << 10
	chunkBits  = 13
)

// record returns a record by its position.
func (l *liveKeys) record(at uint32) *liveKey {
	return &l.chunks[(at-1)>>chunkBits][(at-1)&(1<<chunkBits-1)]
}

// find returns the slot of a key, or the empty slot where it belongs.
func (l *liveKeys) find(key keyHash) int {
	mask := uint32(len(l.slots) - 1)
	tag := uint32(key[0])
	for i := tag & mask; ; i = (i + 1) & mask {
		s := l.slots[i]
		if s.at == 0 {
			return int(i)
		}
		if s.tag != tag {
			continue
		}
		if k := l.record(s.at); k.high == key[1] && k.low == uint32(key[0]>>32) {
			return int(i)
		}
	}
}

// warmed is how many keys are warmed at once.
const warmed = 32

// warm brings what find reads for the next keys into the cache. One lookup waits for its slot, and then for its record;
// lookups without a branch between them wait together.
func (l *liveKeys) warm(next []record) {
	if len(l.slots) <= firstSlots {
		return
	}
	mask := uint32(len(l.slots) - 1)
	var at [warmed]uint32
	for i := range min(len(next), warmed) {
		at[i] = l.slots[uint32(next[i].key[0])&mask].at
	}
	for _, n := range at {
		l.warmth += l.record(max(n, 1)).high
	}
}

// get returns the newest record of a key, nil if it is not live.
func (l *liveKeys) get(key keyHash) *liveKey {
	if l.used == 0 {
		return nil
	}
	if at := l.slots[l.find(key)].at; at != 0 {
		return l.record(at)
	}
	return nil
}

// put makes now the newest record of a key and returns the previous one.
func (l *liveKeys) put(key keyHash, now liveKey) (before liveKey, known bool) {
	if 4*l.used >= 3*len(l.slots) {
		l.grow()
	}
	now.high, now.low = key[1], uint32(key[0]>>32)
	slot := &l.slots[l.find(key)]
	if slot.at != 0 {
		k := l.record(slot.at)
		before, *k = *k, now
		return before, true
	}
	l.used++
	slot.tag, slot.at = uint32(key[0]), l.room()
	*l.record(slot.at) = now
	return before, false
}

// room returns the position of an unused record.
func (l *liveKeys) room() uint32 {
	if n := len(l.free); n > 0 {
		at := l.free[n-1]
		l.free = l.free[:n-1]
		return at
	}
	if int(l.next)>>chunkBits == len(l.chunks) {
		l.chunks = append(l.chunks, new(liveChunk))
	}
	l.next++
	return l.next
}

func (l *liveKeys) grow() {
	old := l.slots
	l.slots = make([]liveSlot, max(firstSlots, 2*len(old)))
	mask := uint32(len(l.slots) - 1)
	for _, s := range old {
		if s.at == 0 {
			continue
		}
		i := s.tag & mask
		for l.slots[i].at != 0 {
			i = (i + 1) & mask
		}
		l.slots[i] = s
	}
}

// remove forgets a key and returns its newest record.
func (l *liveKeys) remove(key keyHash) (before liveKey, known bool) {
	if l.used == 0 {
		return before, false
	}
	i := l.find(key)
	at := l.slots[i].at
	if at == 0 {
		return before, false
	}
	l.free = append(l.free, at)
	l.used--
	l.close(uint32(i))
	return *l.record(at), true
}

// close empties a slot and moves up later keys that could not be found any more.
func (l *liveKeys) close(hole uint32) {
	mask := uint32(len(l.slots) - 1)
	for i := (hole + 1) & mask; l.slots[i].at != 0; i = (i + 1) & mask {
		home := l.slots[i].tag & mask
		if (i-home)&mask >= (i-hole)&mask {
			l.slots[hole], hole = l.slots[i], i
		}
	}
	l.slots[hole] = liveSlot{}
}

// part returns a table of only those keys that belong to a part.
func (l *liveKeys) part(of keyPart) (out liveKeys) {
	for _, s := range l.slots {
		if s.at == 0 {
			continue
		}
		if k := l.record(s.at); k.high&of.mask == of.part {
			out.put(keyHash{uint64(k.low)<<32 | uint64(s.tag), k.high}, *k)
		}
	}
	return out
}

// all calls use for the newest record of every live key, in any order.
func (l *liveKeys) all(use func(*liveKey)) {
	for i := range l.slots {
		if at := l.slots[i].at; at != 0 {
			use(l.record(at))
		}
	}
}
