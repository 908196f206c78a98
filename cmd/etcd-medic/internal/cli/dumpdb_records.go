package cli

import (
	"bytes"
	"context"
	"iter"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumpdb/kube"
)

// dbItem is one record to show, or damage if that is set.
type dbItem struct {
	rec    dumpdb.Salvaged
	damage *dumpdb.DamageError
}

// dbBatch is passed from the reading to an encoding goroutine. The bytes of its records are in arena.
type dbBatch struct {
	items []dbItem
	arena []byte
}

func newDBBatch() *dbBatch { return &dbBatch{} }

func (b *dbBatch) full() bool { return len(b.arena) >= batchBytes || len(b.items) >= batchItems }

// recordLister lists records of bucket key: one goroutine reads, others encode.
type recordLister struct {
	*dbLister
	spare spares[*dbBatch]
}

func (l *dbLister) records(ctx context.Context) error {
	r := recordLister{l, newSpares[*dbBatch]()}
	return ordered(ctx, r.read, r.encode, l.stream.WriteEncoded)
}

// selected returns the requested records; those that were not salvaged have no origin.
func (r *recordLister) selected(ctx context.Context) iter.Seq2[dumpdb.Salvaged, error] {
	if r.o.salvage || r.o.free {
		return r.salvaged(ctx)
	}
	return func(yield func(dumpdb.Salvaged, error) bool) {
		for rev, err := range r.db.Query(ctx, r.o.query()) {
			if !yield(dumpdb.Salvaged{Revision: rev}, outOfReach(err)) {
				return
			}
		}
	}
}

// salvaged returns all records anywhere in the file, filtered by the query.
func (r *recordLister) salvaged(ctx context.Context) iter.Seq2[dumpdb.Salvaged, error] {
	q := r.o.query()
	return func(yield func(dumpdb.Salvaged, error) bool) {
		for rec, err := range r.db.SalvageRevisions(ctx) {
			if err == nil && !r.wanted(&rec, &q) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// wanted also keeps records that do not decode, since they may match.
func (r *recordLister) wanted(rec *dumpdb.Salvaged, q *dumpdb.Query) bool {
	switch {
	case r.o.free && rec.Origin != dumpdb.OriginFree, rec.Main < q.FromRev, q.ToRev > 0 && rec.Main > q.ToRev:
		return false
	case rec.Err != nil:
		return true
	}
	return (q.Key == nil || bytes.Equal(rec.KV.Key, q.Key)) && bytes.HasPrefix(rec.KV.Key, q.Prefix)
}

// read emits batches of records and of the damage between them.
func (r *recordLister) read(ctx context.Context, emit func(*dbBatch) error) error {
	b := r.spare.get(newDBBatch)
	for rec, err := range r.selected(ctx) {
		switch {
		case err != nil:
			if err := r.damageIn(b, err); err != nil {
				return err
			}
		case r.o.limit > 0 && r.rows >= r.o.limit:
			return emit(b)
		default:
			r.keep(b, &rec)
		}
		if !b.full() {
			continue
		}
		if err := emit(b); err != nil {
			return err
		}
		b = r.spare.get(newDBBatch)
	}
	return emit(b)
}

func (r *recordLister) damageIn(b *dbBatch, err error) error {
	return eachDamage(err, r.noMeta, func(d *dumpdb.DamageError) error {
		r.bad++
		b.items = append(b.items, dbItem{damage: d})
		return nil
	})
}

// keep copies a record into the batch, since the iterator reuses its bytes.
func (r *recordLister) keep(b *dbBatch, rec *dumpdb.Salvaged) {
	r.rows++
	if rec.Err != nil && rec.Origin != dumpdb.OriginFree {
		r.bad++
	}
	it := dbItem{rec: *rec}
	it.rec.KV = dumpdb.KeyValue{} // points into Raw; encode decodes it again
	it.rec.Raw = b.copy(rec.Raw)
	it.rec.RawKey = nil
	if rec.Err != nil {
		it.rec.RawKey = b.copy(rec.RawKey)
	}
	b.items = append(b.items, it)
}

// copy copies p into the arena. Earlier copies keep the old array when a new one is needed.
func (b *dbBatch) copy(p []byte) []byte {
	if cap(b.arena)-len(b.arena) < len(p) {
		b.arena = make([]byte, 0, max(batchBytes+batchBytes/4, len(p)))
	}
	at := len(b.arena)
	b.arena = append(b.arena, p...)
	return b.arena[at:len(b.arena):len(b.arena)]
}

// encode appends the rows of a batch to out.
func (r *recordLister) encode(b *dbBatch, out []byte) ([]byte, error) {
	row := &render.KeyRow{KeysOnly: r.o.keysOnly, Object: r.o.opts.Values}
	for i := range b.items {
		it := &b.items[i]
		if it.damage != nil {
			out = r.stream.Encode(out, render.DBDamage{DamageError: it.damage})
			continue
		}
		it.rec.KV, _ = dumpdb.DecodeKeyValue(it.rec.Raw) // rec.Err has it if it does not decode
		row.Revision, row.Kube = &it.rec.Revision, r.decoded(it.rec.KV.Value)
		if it.rec.Origin == "" {
			out = r.stream.Encode(out, row)
		} else {
			out = r.stream.Encode(out, render.SalvagedRow{Salvaged: &it.rec, KeyRow: row})
		}
	}
	b.items, b.arena = b.items[:0], b.arena[:0]
	r.spare.put(b)
	return out, nil
}

// decoded returns the Kubernetes object in a value, if it is one and requested.
func (r *recordLister) decoded(value []byte) *kube.Object {
	if !r.o.kube {
		return nil
	}
	if obj, ok := kube.Decode(value, kube.Options{Secrets: r.o.opts.Secrets, Digest: r.o.opts.Redact.Digest}); ok {
		return &obj
	}
	return nil
}
