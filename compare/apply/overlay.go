package apply

import (
	"slices"

	"github.com/google/btree"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// overlay has the live keys as one transaction changes them, step by step. No step visits a key that an earlier range
// delete has removed, so a transaction takes time in proportion to its operations and the keys that it deletes.
type overlay struct {
	keys *Keys
	// last is the newest write of the transaction by key.
	last map[string]*Write
	// added are the live keys that keys does not have, and those inside a gap.
	added *btree.BTreeG[string]
	// gaps are the deleted ranges, joined where they meet. Inside a gap, only the keys of added are live.
	gaps *btree.BTreeG[[2]string]
}

const overlayDegree = 16

func newOverlay(keys *Keys) overlay {
	return overlay{keys: keys, last: map[string]*Write{}, added: btree.NewOrderedG[string](overlayDegree),
		gaps: btree.NewG(overlayDegree, func(a, b [2]string) bool { return a[0] < b[0] })}
}

// put records a put.
func (o *overlay) put(w *Write) {
	o.last[w.Key] = w
	if o.keys.Get(w.Key) == nil || o.inGap(w.Key) {
		o.added.ReplaceOrInsert(w.Key)
	}
}

// remove deletes the live keys of a range and returns them in order. sure is false if it is unknown whether one of them
// exists.
func (o *overlay) remove(d *dumplog.DeleteRangeRequest) (keys []string, sure bool) {
	at := span(string(d.Key), string(d.RangeEnd))
	if at[1] != openEnd && at[0] >= at[1] {
		return nil, true
	}
	sure = true
	visit := func(k *Key) bool {
		if w, ok := o.last[k.Name]; !ok || !w.Delete {
			sure = sure && (ok || !k.Unsure)
			keys = append(keys, k.Name)
		}
		return true
	}
	switch {
	case len(d.RangeEnd) > 0:
		o.clear(at, visit)
	case !o.inGap(at[0]):
		o.keys.Range(d.Key, nil, visit)
	}
	stored := len(keys)
	o.added.AscendGreaterOrEqual(at[0], func(key string) bool {
		if at[1] != openEnd && key >= at[1] {
			return false
		}
		keys = append(keys, key)
		return true
	})
	for _, key := range keys[stored:] {
		o.added.Delete(key)
	}
	if stored > 0 && stored < len(keys) {
		slices.Sort(keys)
	}
	for _, key := range keys {
		o.last[key] = &Write{Key: key, Delete: true}
	}
	return keys, sure
}

// inGap reports whether an earlier range delete covers the key.
func (o *overlay) inGap(key string) (inside bool) {
	o.gaps.DescendLessOrEqual([2]string{key}, func(g [2]string) bool {
		inside = g[1] == openEnd || key < g[1]
		return false
	})
	return inside
}

// clear makes the range a gap, after it has visited the stored keys of its parts outside of earlier gaps.
func (o *overlay) clear(at [2]string, visit func(*Key) bool) {
	from, met := at[0], o.meeting(at)
	for _, g := range met {
		o.gaps.Delete(g)
		if from < g[0] {
			o.visit(from, g[0], visit)
		}
		from = g[1]
		at[0] = min(at[0], g[0])
		if from == openEnd || at[1] != openEnd && at[1] < from {
			at[1] = from
		}
		if from == openEnd {
			break // the last one
		}
	}
	if len(met) == 0 || from != openEnd && (at[1] == openEnd || from < at[1]) {
		o.visit(from, at[1], visit)
	}
	o.gaps.ReplaceOrInsert(at)
}

// meeting returns the gaps that overlap the range or touch it, in order.
func (o *overlay) meeting(at [2]string) (met [][2]string) {
	o.gaps.DescendLessOrEqual([2]string{at[0]}, func(g [2]string) bool {
		if g[1] == openEnd || at[0] <= g[1] {
			met = append(met, g)
		}
		return false
	})
	o.gaps.AscendGreaterOrEqual([2]string{at[0]}, func(g [2]string) bool {
		if at[1] != openEnd && g[0] > at[1] {
			return false
		}
		if len(met) == 0 || met[0] != g {
			met = append(met, g)
		}
		return true
	})
	return met
}

// visit visits the stored keys from from up to end.
func (o *overlay) visit(from, end string, visit func(*Key) bool) {
	to := []byte(end)
	switch end {
	case openEnd:
		to = []byte{0}
	case "\x00":
		to = nil // only the empty key is below; as the end of a range, these bytes mean that there is none
	}
	o.keys.Range([]byte(from), to, visit)
}
