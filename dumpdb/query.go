package dumpdb

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Query selects records of bucket key. The zero Query selects all.
type Query struct {
	// Key selects one key, or with RangeEnd the keys from Key up to but not including RangeEnd (one zero byte: to the
	// end), as in etcd. Prefix selects keys that start with it. nil means any.
	Key, RangeEnd, Prefix []byte
	// FromRev and ToRev bound the main revision, both inclusive; 0 is open.
	FromRev, ToRev int64
	// Rev is the revision for Live and Deleted; 0 is the current one.
	Rev int64
	// Live selects the newest record of every key that exists at Rev, Deleted the tombstone of every key that does not.
	// Both yield in key order, other queries in revision order.
	Live, Deleted bool
}

func (q *Query) matches(key []byte) bool {
	return q.inRange(key) && bytes.HasPrefix(key, q.Prefix)
}

func (q *Query) inRange(key []byte) bool {
	switch {
	case q.RangeEnd == nil:
		return q.Key == nil || bytes.Equal(key, q.Key)
	case bytes.Compare(key, q.Key) < 0:
		return false
	}
	return string(q.RangeEnd) == "\x00" || bytes.Compare(key, q.RangeEnd) < 0
}

func (q *Query) span() span {
	var sp span
	if q.FromRev > 0 {
		sp.first = Rev{Main: q.FromRev}.Bytes()
	}
	if q.ToRev > 0 {
		sp.end = Rev{Main: q.ToRev + 1}.Bytes()
	}
	return sp
}

// Query yields the selected records. It also yields damage and records that do not decode, since they may match. It
// ends with ErrCompacted or ErrFutureRev if Rev is not available.
func (db *DB) Query(ctx context.Context, q Query) iter.Seq2[Revision, error] {
	if q.Live || q.Deleted {
		return stateQuery{db, q}.run(ctx)
	}
	return db.scanQuery(ctx, q)
}

// History yields every record of one key, oldest first.
func (db *DB) History(ctx context.Context, key []byte) iter.Seq2[Revision, error] {
	return db.Query(ctx, Query{Key: key})
}

// scanQuery yields the selected records in revision order.
func (db *DB) scanQuery(ctx context.Context, q Query) iter.Seq2[Revision, error] {
	return func(yield func(Revision, error) bool) {
		for r, err := range db.revisions(q.span()) {
			if ctx.Err() != nil {
				yield(Revision{}, ctx.Err())
				return
			}
			if err == nil && r.Err == nil && !q.matches(r.KV.Key) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// keyState is the newest record of a key in the range of a query.
type keyState struct {
	key       string
	place     Place
	tombstone bool
}

// stateQuery selects keys by whether they exist at a revision.
type stateQuery struct {
	db *DB
	q  Query
}

func (sq stateQuery) run(ctx context.Context) iter.Seq2[Revision, error] {
	return func(yield func(Revision, error) bool) {
		if err := sq.resolveRev(); err != nil {
			yield(Revision{}, err)
			return
		}
		states, q := map[string]keyState{}, &sq.q
		all := Query{Key: q.Key, RangeEnd: q.RangeEnd, Prefix: q.Prefix, ToRev: q.Rev}
		for r, err := range sq.db.scanQuery(ctx, all) {
			if err != nil || r.Err != nil {
				if !yield(r, err) || ctx.Err() != nil {
					return
				}
				continue
			}
			if q.Deleted || !r.Tombstone {
				states[string(r.KV.Key)] = keyState{string(r.KV.Key), r.Place, r.Tombstone}
			} else {
				delete(states, string(r.KV.Key))
			}
		}
		sq.yieldStates(states, yield)
	}
}

func (sq *stateQuery) yieldStates(states map[string]keyState, yield func(Revision, error) bool) {
	q, list := &sq.q, make([]keyState, 0, len(states))
	for _, s := range states {
		if s.tombstone && q.Deleted || !s.tombstone && q.Live {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b keyState) int { return strings.Compare(a.key, b.key) })
	rd := recordReader{db: sq.db, r: sq.db.reader()}
	for _, s := range list {
		rev, err := rd.at(s.place)
		if err == nil && (q.FromRev > rev.Main || q.ToRev > 0 && q.ToRev < rev.Main) {
			continue
		}
		if !yield(rev, err) {
			return
		}
	}
}

// resolveRev sets Rev if it is 0, and refuses what the server would refuse.
func (sq *stateQuery) resolveRev() error {
	db, q := sq.db, &sq.q
	m, err := db.MetaBucket()
	if err != nil {
		return err
	}
	cur, err := db.CurrentRev()
	switch {
	case q.Rev == 0 && err != nil:
		return nil // with a damaged right edge all remaining records count
	case err != nil:
		return err
	case q.Rev == 0:
		q.Rev = cur
	case q.Rev < m.CompactRev():
		return fmt.Errorf("revision %d, compacted at %d: %w", q.Rev, m.CompactRev(), ErrCompacted)
	case q.Rev > cur:
		return fmt.Errorf("revision %d, current %d: %w", q.Rev, cur, ErrFutureRev)
	}
	return nil
}
