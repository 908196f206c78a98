package rebuild

import (
	"context"
	"errors"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// compaction removes superseded records as a server does.
type compaction struct{ *engine }

func (e *engine) compaction() compaction { return compaction{e} }

// run removes what the compactions of the log dropped. It removes, for every key, the records at or below the
// compact revision except the newest one. It also removes that one if it is a tombstone below the compact revision. A
// tombstone exactly at it stays, as in 3.4.34+, 3.5.16+ and 3.6+; older servers drop it, which no reader notices.
// Servers compact in the background; doing it once at the end has the same result.
func (e compaction) run(ctx context.Context) error {
	comp := e.at.CompactRevision
	mark := dumpdb.Rev{Main: comp}.Bytes()
	if comp < 0 || string(e.tx.Bucket([]byte("meta")).Get([]byte("finishedCompactRev"))) >= string(mark) {
		return nil
	}
	e.b.say("compacting at revision %d", comp)
	newest, err := e.newest(ctx, comp)
	if err != nil {
		return err
	}
	var from []byte
	for {
		drop, next, err := e.dropped(ctx, comp, from, newest)
		if err != nil {
			return err
		}
		for _, k := range drop {
			if err := e.key.Delete(k); err != nil {
				return err
			}
		}
		if next == nil {
			break
		}
		from = next
		if err := errors.Join(e.commit(), e.begin()); err != nil {
			return err
		}
	}
	return e.smallRows().setRow("meta", []byte("finishedCompactRev"), mark)
}

// newest maps each key to the bucket key of its newest record at or below comp.
func (e compaction) newest(ctx context.Context, comp int64) (map[string]dumpdb.Rev, error) {
	out := map[string]dumpdb.Rev{}
	end := string(dumpdb.Rev{Main: comp + 1}.Bytes())
	c := e.key.Cursor()
	for k, v := c.First(); k != nil && string(k) < end; k, v = c.Next() {
		if len(v) == 0 {
			continue // written by restore --bump-revision
		}
		kv, err := dumpdb.DecodeKeyValue(v)
		if err != nil {
			return nil, err
		}
		out[string(kv.Key)] = revOf(k)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return out, nil
}

func revOf(k []byte) dumpdb.Rev {
	r := dumpdb.Rev{}
	for i := range 8 {
		r.Main = r.Main<<8 | int64(k[i])
		r.Sub = r.Sub<<8 | int64(k[9+i])
	}
	return r
}

// dropBatch bounds how many records are collected before they are deleted, in one transaction: a cursor becomes invalid
// by deletions, and what remains of their pages is in memory until it ends.
const dropBatch = 10000

func (e compaction) dropped(ctx context.Context, comp int64, from []byte, newest map[string]dumpdb.Rev) (drop [][]byte,
	next []byte, err error) {
	end := string(dumpdb.Rev{Main: comp + 1}.Bytes())
	c := e.key.Cursor()
	k, v := c.First()
	if from != nil {
		k, v = c.Seek(from)
	}
	for size := 0; k != nil && string(k) < end; k, v = c.Next() {
		if len(drop) == dropBatch || len(drop) > 0 && size >= datadir.TxBytes {
			return drop, append([]byte{}, k...), ctx.Err()
		}
		if size += len(v); len(v) == 0 {
			continue
		}
		kv, err := dumpdb.DecodeKeyValue(v)
		if err != nil {
			return nil, nil, err
		}
		rev := revOf(k)
		tombstone := len(k) > 17
		if rev == newest[string(kv.Key)] && (!tombstone || rev.Main == comp) {
			continue
		}
		drop = append(drop, append([]byte{}, k...))
	}
	return drop, nil, ctx.Err()
}
