package replay

import "github.com/etcd-medic/etcd-medic/compare/apply"

// warm brings the keys of the newest entries of the window into the cache, for each model: most of the time that a step
// takes is that of finding its keys in memory.
func (w *walker) warm() {
	w.names = w.names[:0]
	for _, it := range w.window[len(w.window)-w.cold:] {
		if name := it.firstKey(); name != nil {
			w.names = append(w.names, name)
		}
	}
	for _, s := range w.sims {
		if s != nil {
			s.Keys.Warm(w.names)
		}
	}
	w.cold = 0
}

// firstKey returns the first key that the entry names to be written, nil if there is none.
func (it *item) firstKey() []byte {
	switch r := it.req; {
	case r.Put != nil:
		return r.Put.Key
	case r.DeleteRange != nil:
		return r.DeleteRange.Key
	case r.Txn != nil && len(r.Txn.Compare) > 0:
		return r.Txn.Compare[0].Key
	}
	return nil
}

// warm is walker.warm for the next records that are loaded, which begin at a place in names.
func (l *keyLoader) warm(read *keyRecords, next, from int) {
	var names [apply.Warmed][]byte
	n := 0
	for _, r := range read.records[next:min(next+apply.Warmed, len(read.records))] {
		names[n] = read.names[from:r.name]
		from = r.name
		n++
	}
	l.keys.Warm(names[:n])
}
