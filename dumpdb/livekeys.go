package dumpdb

// lifeState is the state of a live key.
type lifeState struct {
	rev             Rev
	create, version int64
	lease           int64
	place           Place
}

// liveKeys has the newest record of every live key, in an open-addressing table. Every record of the bucket is looked
// up here, and nearly every lookup misses the cache, so a lookup may cost only one access. The states are kept
// separately; those of deleted keys are reused.
type liveKeys struct {
	slots  []liveSlot // a power of two, at most three quarters in use
	used   int
	states []lifeState
	free   []int32
}

// liveSlot is a key and the position of its state, counted from 1; 0 means an empty slot.
type liveSlot struct {
	key keyHash
	at  int32
}

const firstSlots = 1 << 10

// find returns the slot of a key, or the empty slot where it belongs.
func (l *liveKeys) find(key keyHash) int {
	mask := len(l.slots) - 1
	i := int(key[0]) & mask
	for l.slots[i].at != 0 && l.slots[i].key != key {
		i = (i + 1) & mask
	}
	return i
}

// put makes r the newest record of its key and returns the previous one.
func (l *liveKeys) put(r *record) (before lifeState, known bool) {
	if 4*l.used >= 3*len(l.slots) {
		l.grow()
	}
	now := lifeState{r.rev, r.create, r.version, r.lease, r.place}
	slot := &l.slots[l.find(r.key)]
	if slot.at != 0 {
		state := &l.states[slot.at-1]
		before, *state = *state, now
		return before, true
	}
	l.used++
	if n := len(l.free); n > 0 {
		slot.key, slot.at, l.free = r.key, l.free[n-1], l.free[:n-1]
		l.states[slot.at-1] = now
		return before, false
	}
	l.states = append(l.states, now)
	slot.key, slot.at = r.key, int32(len(l.states))
	return before, false
}

func (l *liveKeys) grow() {
	old := l.slots
	l.slots = make([]liveSlot, max(firstSlots, 2*len(old)))
	for _, s := range old {
		if s.at != 0 {
			l.slots[l.find(s.key)] = s
		}
	}
}

func (l *liveKeys) remove(key keyHash) (known bool) {
	if l.used == 0 {
		return false
	}
	i := l.find(key)
	if l.slots[i].at == 0 {
		return false
	}
	l.free = append(l.free, l.slots[i].at)
	l.used--
	l.close(i)
	return true
}

// close empties a slot and moves up later keys that could not be found any more.
func (l *liveKeys) close(hole int) {
	mask := len(l.slots) - 1
	for i := (hole + 1) & mask; l.slots[i].at != 0; i = (i + 1) & mask {
		home := int(l.slots[i].key[0]) & mask
		if (i-home)&mask >= (i-hole)&mask {
			l.slots[hole], hole = l.slots[i], i
		}
	}
	l.slots[hole] = liveSlot{}
}

// newest returns the newest record of a live key.
func (l *liveKeys) newest(key keyHash) (Rev, bool) {
	if l.used == 0 {
		return Rev{}, false
	}
	if at := l.slots[l.find(key)].at; at != 0 {
		return l.states[at-1].rev, true
	}
	return Rev{}, false
}

// all calls use for the newest record of every live key, in any order.
func (l *liveKeys) all(use func(*lifeState)) {
	for i := range l.slots {
		if at := l.slots[i].at; at != 0 {
			use(&l.states[at-1])
		}
	}
}
