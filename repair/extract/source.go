package extract

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Record is one selected record. Slices are valid until the sink returns.
type Record struct {
	dumpdb.KeyValue
	// Rev is the record's revision. Tombstone marks a deletion in a history; such a record carries the key alone.
	Rev       dumpdb.Rev
	Tombstone bool
	// Deleted is the revision that deleted the key, zero for a key that exists.
	Deleted dumpdb.Rev
	// Origin says where the record stood; "" is the tree.
	Origin dumpdb.Origin
}

// reader walks the source and yields what is selected.
type reader struct {
	db  *dumpdb.DB
	o   *Options
	res *Result
	// noMeta is set for a file without a usable meta page: there is no tree, everything is salvaged.
	noMeta bool
	dir    string
	found  map[string]bool
	leases map[int64]int64
	used   map[int64]bool
}

// open opens the database at path, with salvage where neither meta page is usable.
func (x *reader) open(path string) error {
	db, err := dumpdb.Open(path)
	if errors.Is(err, dumpdb.ErrNoMeta) {
		if err := x.res.damaged(err); err != nil {
			return err
		}
		x.noMeta = true
		db, err = dumpdb.OpenSalvage(path)
	}
	if err != nil {
		return err
	}
	x.db = db
	if x.noMeta {
		x.res.CompactRevision = -1
		x.res.note("neither meta page is usable: records are those of pages that read as leaves, and which of them were in use nobody knows")
		return nil
	}
	return x.state()
}

// state reads what surrounds bucket key: revisions and leases.
func (x *reader) state() error {
	m, err := x.db.MetaBucket()
	if err := x.res.damaged(err); err != nil {
		return err
	}
	x.res.CompactRevision = m.CompactRev()
	cur, err := x.db.CurrentRev()
	if err := x.res.damaged(err); err != nil {
		return err
	}
	x.res.Revision = cur
	if x.o.Rev > 0 {
		if x.o.Rev > cur && err == nil {
			return refuse("revision %d is a future revision: the current one is %d", x.o.Rev, cur)
		}
		if x.o.Rev < x.res.CompactRevision {
			return refuse("revision %d has been compacted: the compact revision is %d", x.o.Rev, x.res.CompactRevision)
		}
		x.res.Revision = x.o.Rev
	}
	leases, err := x.db.Leases()
	if err := x.res.damaged(err); err != nil {
		return err
	}
	for _, l := range leases {
		ttl := l.TTL
		if l.RemainingTTL > 0 {
			ttl = l.RemainingTTL
		}
		x.leases[int64(l.ID)] = ttl
	}
	return nil
}

// rows yields every record up to the wanted revision, in revision order; damage beside.
func (x *reader) rows(ctx context.Context) iter.Seq2[dumpdb.Salvaged, error] {
	salvage := x.o.Salvage || x.noMeta
	return func(yield func(dumpdb.Salvaged, error) bool) {
		if salvage {
			for rec, err := range x.db.SalvageRevisions(ctx) {
				if err == nil && (rec.Origin == dumpdb.OriginFree && !x.noMeta || x.o.Rev > 0 && rec.Main > x.o.Rev) {
					continue
				}
				if !yield(rec, err) {
					return
				}
			}
			return
		}
		q := dumpdb.Query{ToRev: x.o.Rev}
		for rec, err := range x.db.Query(ctx, q) {
			if !yield(dumpdb.Salvaged{Revision: rec}, err) {
				return
			}
		}
	}
}

// selected yields the records whose key is selected; match says whether the Kubernetes conditions hold too.
func (x *reader) selected(ctx context.Context, use func(rec *dumpdb.Salvaged, match bool) error) error {
	for rec, err := range x.rows(ctx) {
		if err != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			if x.noMeta && errors.Is(err, dumpdb.ErrNoMeta) {
				continue // told when it was opened
			}
			if err := x.res.damaged(err); err != nil {
				return err
			}
			continue
		}
		switch {
		case rec.Err != nil:
			x.res.Lost.Undecodable++
			continue
		case len(rec.KV.Key) == 0: // the mark of restore --bump-revision
			continue
		case !x.o.Select.key(rec.KV.Key):
			continue
		}
		x.res.Revision = max(x.res.Revision, rec.Main)
		if err := use(&rec, x.o.Select.object(rec.KV.Key, rec.KV.Value)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// newest keeps of each key its newest record, the newest put before a tombstone, and nothing else. refs are in byKey order.
func newest(refs []*ref) []*ref {
	out := refs[:0]
	for i := 0; i < len(refs); {
		j := i
		for j < len(refs) && bytes.Equal(refs[j].key, refs[i].key) {
			j++
		}
		group := refs[i:j]
		last := group[len(group)-1]
		if last.tombstone {
			for k := len(group) - 2; k >= 0; k-- {
				if !group[k].tombstone {
					out = append(out, group[k])
					break
				}
			}
		}
		out = append(out, last)
		i = j
	}
	return out
}

// states gathers the newest records of all selected keys.
func (x *reader) states(ctx context.Context) (*spool, error) {
	s := x.newSpool(byKey, newest)
	err := x.selected(ctx, func(rec *dumpdb.Salvaged, match bool) error {
		r := &ref{key: bytes.Clone(rec.KV.Key), rev: rec.Rev, tombstone: rec.Tombstone, match: match, origin: rec.Origin, place: rec.Place}
		if rec.Origin == dumpdb.OriginUnreachable || rec.Origin == dumpdb.OriginFree || x.noMeta {
			r.rawKey, r.raw = bytes.Clone(rec.RawKey), bytes.Clone(rec.Raw)
		}
		return s.add(r)
	})
	return s, err
}

// keyState is a key with its newest put and, if it is gone, the tombstone behind it.
type keyState struct {
	put, tombstone *ref
}

// decide turns the states into what is wanted: live keys, and deleted ones if asked for.
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
		if r.tombstone {
			k.tombstone = r
			continue
		}
		k.put, k.tombstone = r, nil
	}
	return settle()
}

func (x *reader) settle(k keyState, use func(keyState) error) error {
	switch {
	case k.tombstone == nil && !k.put.match, k.tombstone != nil && !x.o.Deleted:
		return nil
	case k.tombstone == nil, k.put != nil && k.put.match:
		return use(k)
	case k.put == nil && k.tombstone.match:
		x.found[string(k.tombstone.key)] = true
		x.res.Lost.NoValueCount++
		if len(x.res.Lost.NoValue) < listed {
			x.res.Lost.NoValue = append(x.res.Lost.NoValue, check.Bytes(k.tombstone.key))
		}
	}
	return nil
}

// load reads a record again.
func (x *reader) load(rd *dumpdb.RecordReader, r *ref) (*Record, error) {
	out := &Record{Rev: r.rev, Origin: r.origin}
	if len(r.rawKey) > 0 {
		kv, err := dumpdb.DecodeKeyValue(r.raw)
		out.KeyValue = kv
		return out, err
	}
	rev, err := rd.At(r.place)
	if err != nil {
		return nil, err
	}
	if rev.Err != nil {
		return nil, rev.Err
	}
	out.KeyValue = rev.KV
	return out, nil
}

// live yields the wanted keys in key order with their values.
func (x *reader) live(ctx context.Context, use func(*Record) error) error {
	s, err := x.states(ctx)
	if err != nil {
		return err
	}
	rd := x.db.RecordReader()
	return x.decide(s, func(k keyState) error {
		rec, err := x.load(rd, k.put)
		if err != nil {
			return x.res.damaged(err)
		}
		if k.tombstone != nil {
			rec.Deleted = k.tombstone.rev
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return x.emit(rec, use)
	})
}

// history yields every wanted record in revision order.
func (x *reader) history(ctx context.Context, use func(*Record) error) error {
	return x.selected(ctx, func(rec *dumpdb.Salvaged, match bool) error {
		if !match {
			return nil
		}
		return x.emit(&Record{KeyValue: rec.KV, Rev: rec.Rev, Tombstone: rec.Tombstone, Origin: rec.Origin}, use)
	})
}

// emit counts a record and hands it on, its lease handled as asked for.
func (x *reader) emit(rec *Record, use func(*Record) error) error {
	if len(x.o.Select.Keys) > 0 {
		x.found[string(rec.Key)] = true
	}
	if rec.Lease != 0 && !rec.Tombstone && !x.lease(rec) {
		return nil
	}
	before := x.leftOut()
	if err := use(rec); err != nil {
		return err
	}
	if x.leftOut() > before {
		return nil
	}
	x.count(rec)
	return nil
}

func (x *reader) leftOut() (n int64) {
	for i := range x.res.LeftOut {
		n += x.res.LeftOut[i].Count
	}
	return n
}

func (x *reader) count(rec *Record) {
	r := x.res
	r.Records++
	r.Bytes += int64(len(rec.Key) + len(rec.Value))
	if rec.Tombstone {
		r.Tombstones++
	}
	if rec.Origin == dumpdb.OriginFree || rec.Origin == dumpdb.OriginUnreachable {
		r.Salvaged++
	}
	if !x.o.History {
		r.Keys++
		if rec.Deleted != (dumpdb.Rev{}) {
			r.DeletedKeys++
		}
	}
}

// lease handles the lease of a record and tells whether the record is kept.
func (x *reader) lease(rec *Record) bool {
	l := &x.res.Leases
	l.Keys++
	if !x.used[rec.Lease] {
		x.used[rec.Lease] = true
		l.Leases++
	}
	_, known := x.leases[rec.Lease]
	if !known {
		l.Unknown++
	}
	switch x.o.Leases {
	case LeaseDetach:
		rec.Lease = 0
	case LeaseSkip:
		return false
	case LeaseGrant:
		if !known && !x.o.Format.carriesLeases() {
			rec.Lease = 0
		}
	}
	return true
}

// missing files the keys that were asked for by name and did not come.
func (x *reader) missing() {
	for _, k := range x.o.Select.Keys {
		if !x.found[string(k)] {
			x.res.Lost.NotFound = append(x.res.Lost.NotFound, check.Bytes(k))
		}
	}
}
