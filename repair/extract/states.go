package extract

import (
	"bytes"
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// newest keeps for each key its newest record, the newest put before a tombstone, and the newest put of a free page if
// the tree has none. refs are in byKey order.
func (x *reader) newest(refs []*ref) []*ref {
	out := refs[:0]
	for i := 0; i < len(refs); {
		j := i
		for j < len(refs) && bytes.Equal(refs[j].key, refs[i].key) {
			j++
		}
		out = append(out, x.newestOf(refs[i:j])...)
		i = j
	}
	return out
}

// unused reports whether a record is only in an unused page. Without a meta page the unused pages are unknown, so all
// records count alike.
func (x *reader) unused(r *ref) bool { return r.origin == dumpdb.OriginFree && !x.noMeta }

func (x *reader) newestOf(group []*ref) (kept []*ref) {
	var last, put, free *ref
	for _, r := range group {
		switch {
		case x.unused(r) && !r.tombstone:
			free = r
		case x.unused(r):
		default:
			last = r
			if !r.tombstone {
				put = r
			}
		}
	}
	if put == nil && free != nil {
		kept = append(kept, free)
	}
	if put != nil && put != last {
		kept = append(kept, put)
	}
	if last != nil {
		kept = append(kept, last)
	}
	slices.SortFunc(kept, byRev)
	return kept
}

// states collects the newest records of all selected keys.
func (x *reader) states(ctx context.Context) (*spool, error) {
	s := x.newSpool(byKey, x.newest)
	err := x.selected(ctx, func(rec *dumpdb.Salvaged, match bool) error {
		r := &ref{key: bytes.Clone(rec.KV.Key), rev: rec.Rev, tombstone: rec.Tombstone, match: match,
			origin: rec.Origin, place: rec.Place}
		if rec.Origin == dumpdb.OriginUnreachable || rec.Origin == dumpdb.OriginFree || x.noMeta {
			r.rawKey, r.raw = bytes.Clone(rec.RawKey), bytes.Clone(rec.Raw)
		}
		return s.add(r)
	})
	return s, err
}

// keyState is a key with its newest put and, if deleted, the later tombstone. free is a put that only an unused page
// still has: compaction dropped it from the tree.
type keyState struct {
	put, tombstone, free *ref
	// gone is set if only free exists: the key is deleted, whether or not its tombstone remains.
	gone bool
}

// decide passes on the selected states: live keys, and deleted ones if requested.
func (x *reader) decide(s *spool, use func(keyState) error) error {
	var k keyState
	var key []byte
	settle := func() error {
		if key == nil {
			return nil
		}
		return x.settle(k, use)
	}
	for r, err := range s.sorted() {
		if err != nil {
			return err
		}
		if key == nil || !bytes.Equal(r.key, key) {
			if err := settle(); err != nil {
				return err
			}
			k, key = keyState{}, r.key
		}
		switch {
		case r.tombstone:
			k.tombstone = r
		case x.unused(r):
			k.free = r
		default:
			k.put, k.tombstone = r, nil
		}
	}
	return settle()
}

func (x *reader) settle(k keyState, use func(keyState) error) error {
	if k.put == nil && k.free != nil && (k.tombstone == nil || byRev(k.free, k.tombstone) < 0) {
		k.put = k.free
		k.gone = true
	}
	switch {
	case k.gone && !k.put.match:
		return nil
	case k.gone:
		return use(k)
	case k.tombstone == nil && !k.put.match, k.tombstone != nil && !x.o.Deleted:
		return nil
	case k.tombstone == nil, k.put != nil && k.put.match:
		return use(k)
	case k.put == nil && k.tombstone.match:
		x.found[string(k.tombstone.key)] = true
		x.res.Lost.NoValueCount++
		if len(x.res.Lost.NoValue) < maxListed {
			x.res.Lost.NoValue = append(x.res.Lost.NoValue, check.Bytes(k.tombstone.key))
		}
	}
	return nil
}
