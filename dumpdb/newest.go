package dumpdb

import (
	"context"
	"maps"
)

// Newest reads bucket key once, on all cores, and returns for each of the keys what of makes of its newest record for
// which it returns true. It passes over tombstones, records that do not decode and what damage hides. of is called from
// several goroutines, and must not keep the record. The error is that of ctx.
func Newest[T any](ctx context.Context, db *DB, keys map[string]struct{}, of func(*Revision) (T, bool)) (map[string]T,
	error) {
	b, ok := db.find("key")
	if !ok || len(keys) == 0 {
		return nil, ctx.Err()
	}
	s, _, err := db.feed(ctx, b, span{}, newBitmap(db.filePages()),
		func() sink { return &newestSink[T]{keys: keys, of: of, found: map[string]T{}} })
	if err != nil {
		return nil, err
	}
	return s.(*newestSink[T]).found, nil
}

type newestSink[T any] struct {
	keys  map[string]struct{}
	of    func(*Revision) (T, bool)
	found map[string]T
}

// newestPortion has what was found in a part of the bucket; found is nil while that is nothing.
type newestPortion[T any] struct {
	of    *newestSink[T]
	found map[string]T
}

func (s *newestSink[T]) newPortion() portion { return &newestPortion[T]{of: s} }

func (s *newestSink[T]) merge(p portion) { maps.Copy(s.found, p.(*newestPortion[T]).found) }

func (p *newestPortion[T]) leaf(l *leaf) {
	var r Revision
	for _, e := range l.elems {
		decodeRevision(&r, l.at(e), e.key, e.value)
		if r.Err != nil || r.Tombstone {
			continue
		}
		if _, wanted := p.of.keys[string(r.KV.Key)]; !wanted {
			continue
		}
		as, ok := p.of.of(&r)
		if !ok {
			continue
		}
		if p.found == nil {
			p.found = map[string]T{}
		}
		p.found[string(r.KV.Key)] = as
	}
}
