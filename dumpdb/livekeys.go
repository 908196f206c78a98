package dumpdb

// lifeState is what is remembered of a live key.
type lifeState struct {
	rev             Rev
	create, version int64
	lease           int64
	place           Place
}

// liveKeys holds the newest record of every live key. The states stand in a slice, so that a record of a known key costs one
// look into the map; those of dead keys are used again.
type liveKeys struct {
	at     map[keyHash]int32
	states []lifeState
	free   []int32
}

// put makes r the newest record of its key and returns the one before.
func (l *liveKeys) put(r *record) (before lifeState, known bool) {
	now := lifeState{r.rev, r.create, r.version, r.lease, r.place}
	if i, ok := l.at[r.key]; ok {
		before, l.states[i] = l.states[i], now
		return before, true
	}
	if n := len(l.free); n > 0 {
		i := l.free[n-1]
		l.free = l.free[:n-1]
		l.states[i], l.at[r.key] = now, i
		return before, false
	}
	l.at[r.key] = int32(len(l.states))
	l.states = append(l.states, now)
	return before, false
}

func (l *liveKeys) remove(key keyHash) (known bool) {
	i, known := l.at[key]
	if known {
		delete(l.at, key)
		l.free = append(l.free, i)
	}
	return known
}

// newest is the newest record of a key that lives.
func (l *liveKeys) newest(key keyHash) (Rev, bool) {
	i, ok := l.at[key]
	if !ok {
		return Rev{}, false
	}
	return l.states[i].rev, true
}
