package dumpdb

import (
	"context"
	"maps"
)

// Newest returns for each of the keys what of makes of its newest record for which it returns true. It passes over
// tombstones, records that do not decode and what damage hides. It reads bucket key on all cores, in three parts from
// the newest records back, until nothing is missing. A key is not looked for below a part of which of has passed over
// all its records: it is likely to pass over the others, too. of is called from several goroutines, and must not keep
// the record. The error is that of ctx.
func Newest[T any](ctx context.Context, db *DB, keys map[string]struct{}, of func(*Revision) (T, bool)) (map[string]T,
	error) {
	b, ok := db.find("key")
	if !ok || len(keys) == 0 {
		return nil, ctx.Err()
	}
	missing, found := maps.Clone(keys), map[string]T{}
	for _, part := range db.newestFirst() {
		s, _, err := db.feed(ctx, b, part, newBitmap(db.filePages()),
			func() sink {
				return &newestSink[T]{keys: missing, of: of, found: map[string]T{}, passed: map[string]struct{}{}}
			})
		if err != nil {
			return nil, err
		}
		sink := s.(*newestSink[T]) //nolint:forcetypeassert // made above
		for key, as := range sink.found {
			found[key] = as
			delete(missing, key)
		}
		for key := range sink.passed {
			delete(missing, key) // unless it was found, too
		}
		if len(missing) == 0 {
			break
		}
	}
	return found, nil
}

// newestFirst divides bucket key by revisions: the newest few first, then more.
func (db *DB) newestFirst() (parts []span) {
	last, err := db.lastRev()
	if err != nil || last < fewRevisions {
		return []span{{}}
	}
	var end []byte
	for _, from := range []int64{last - last/32, last - last/4} {
		first := Rev{Main: from}.Bytes()
		parts, end = append(parts, span{first, end}), first
	}
	return append(parts, span{end: end})
}

// fewRevisions are read at once.
const fewRevisions = 10_000

type newestSink[T any] struct {
	keys  map[string]struct{}
	of    func(*Revision) (T, bool)
	found map[string]T
	// passed are the keys with a record of which of makes nothing.
	passed map[string]struct{}
}

// newestPortion has what was found in a part of the bucket; the maps are nil while that is nothing.
type newestPortion[T any] struct {
	of     *newestSink[T]
	found  map[string]T
	passed map[string]struct{}
}

func (s *newestSink[T]) newPortion() portion { return &newestPortion[T]{of: s} }

func (s *newestSink[T]) merge(p portion) {
	own := p.(*newestPortion[T])
	maps.Copy(s.found, own.found)
	maps.Copy(s.passed, own.passed)
}

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
			if p.passed == nil {
				p.passed = map[string]struct{}{}
			}
			p.passed[string(r.KV.Key)] = struct{}{}
			continue
		}
		if p.found == nil {
			p.found = map[string]T{}
		}
		p.found[string(r.KV.Key)] = as
	}
}
