package extract

import (
	"context"
	"errors"
	"iter"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// Record is one selected record. Slices are valid until the sink returns.
type Record struct {
	dumpdb.KeyValue
	// Rev is the record's revision. Tombstone marks a deletion in a history; such a record has only the key.
	Rev       dumpdb.Rev
	Tombstone bool
	// Gone is set for a deleted key. Deleted is the revision of the deletion, zero if that is compacted.
	Gone    bool
	Deleted dumpdb.Rev
	// Origin says where the record was found; "" is the tree.
	Origin dumpdb.Origin
}

// reader walks the source and yields the selected records.
type reader struct {
	db  *dumpdb.DB
	o   *Options
	res *Result
	// noMeta is set for a file without a valid meta page: there is no tree, and everything is salvaged.
	noMeta bool
	// current is the current revision of the source.
	current int64
	// dir is scratch, out is where the result is built; nil for a stream or a cluster.
	dir    string
	out    *datadir.Building
	found  map[string]bool
	leases map[int64]int64
	used   map[int64]bool
}

// open opens the database at path, with salvage if neither meta page is valid.
func (x *reader) open(ctx context.Context, path string) error {
	db, err := dumpdb.OpenContext(ctx, path)
	if errors.Is(err, dumpdb.ErrNoMeta) {
		if err := x.res.damaged(err); err != nil {
			return err
		}
		x.noMeta = true
		db, err = dumpdb.OpenSalvage(ctx, path)
	}
	if err != nil {
		return err
	}
	x.db = db
	if tr, err := db.Trailer(); err == nil && tr.State == "mismatch" {
		x.res.Lost.Trailer = tr.State
	}
	if !x.noMeta && db.InvalidMeta() == nil {
		x.res.Lost.Ending, _, _ = db.Ending()
	}
	if x.noMeta {
		x.res.CompactRevision = -1
		x.res.note("neither meta page is valid: the records are from all pages that look like leaves; which of them " +
			"were in use is unknown")
		return nil
	}
	if d := db.InvalidMeta(); d != nil {
		x.res.lose(d)
		x.res.note("%s", oneMeta)
	}
	return x.state()
}

// oneMeta is what a database with one valid meta page may lack.
const oneMeta = "one of the two meta pages is not valid: if it was the newer one, these are the keys of one " +
	"transaction of the server earlier"

// state reads revisions and leases.
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
	x.res.Revision, x.current = cur, cur
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

// rows yields every record up to the selected revision, in revision order, and damage.
func (x *reader) rows(ctx context.Context) iter.Seq2[dumpdb.Salvaged, error] {
	salvage := x.o.Salvage || x.noMeta
	return func(yield func(dumpdb.Salvaged, error) bool) {
		if salvage {
			for rec, err := range x.db.SalvageRevisions(ctx) {
				if err == nil && (rec.Origin == dumpdb.OriginFree && !x.wantsFree(rec.Main) || x.o.Rev > 0 &&
					rec.Main > x.o.Rev) {
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

// wantsFree reports whether a record of an unused page counts. Without a meta page all do; otherwise only those that
// may be the last value of a deleted key. A revision above the current one was never committed.
func (x *reader) wantsFree(main int64) bool {
	return x.noMeta || x.o.Deleted && main <= x.current
}

// selected yields the records with a selected key. match says whether the Kubernetes conditions are met too.
func (x *reader) selected(ctx context.Context, use func(rec *dumpdb.Salvaged, match bool) error) error {
	for rec, err := range x.rows(ctx) {
		if err != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			if x.noMeta && errors.Is(err, dumpdb.ErrNoMeta) {
				continue // reported when it was opened
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
		case len(rec.KV.Key) == 0: // written by restore --bump-revision
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

// live yields the selected keys in key order with their values.
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
		rec.Gone = k.gone || k.tombstone != nil
		if k.tombstone != nil {
			rec.Deleted = k.tombstone.rev
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return x.emit(rec, use)
	})
}

// history yields every selected record in revision order.
func (x *reader) history(ctx context.Context, use func(*Record) error) error {
	return x.selected(ctx, func(rec *dumpdb.Salvaged, match bool) error {
		if !match {
			return nil
		}
		return x.emit(&Record{KeyValue: rec.KV, Rev: rec.Rev, Tombstone: rec.Tombstone, Origin: rec.Origin}, use)
	})
}

// emit counts a record and passes it on, with its lease handled as requested.
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
		if rec.Gone {
			r.DeletedKeys++
		}
	}
}

// lease handles the lease of a record and reports whether the record is kept.
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

// missing records the keys that were requested by name and not found.
func (x *reader) missing() {
	for _, k := range x.o.Select.Keys {
		if !x.found[string(k)] {
			x.res.Lost.NotFound = append(x.res.Lost.NotFound, check.Bytes(k))
		}
	}
}
