package cli

import (
	"context"
	"errors"
	"time"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// followEvery is how often a followed log is checked.
const followEvery = 200 * time.Millisecond

// inTurn is run in one goroutine: each batch is decoded and written before the next is read.
func (l *logLister) inTurn(ctx context.Context, read func(context.Context, func(*logBatch) error) error) error {
	var out []byte
	return read(ctx, func(b *logBatch) error {
		var err error
		if out, err = l.encode(b, out[:0]); err != nil {
			return err
		}
		return l.stream.WriteEncoded(out)
	})
}

// follow lists the log and then what is appended, until ctx ends or nothing was appended for the time idle. It returns
// the error of ctx if that ends it.
func (l *logLister) follow(ctx context.Context, idle time.Duration) error {
	tail := dumplog.NewTail(l.m.WAL.Log.Dir())
	tail.Settle = 5 * followEvery
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	l.segments = nil // the extents in the summary are out of date by then
	began := time.Now()
	for {
		more := false
		err := l.inTurn(ctx, func(ctx context.Context, emit func(*logBatch) error) (err error) {
			more, err = l.readTail(ctx, tail, emit)
			return err
		})
		if err != nil {
			return err
		}
		if err := l.stream.Flush(); err != nil {
			return err
		}
		if more {
			began = time.Now()
		} else if idle > 0 && time.Since(began) >= max(idle, tail.Settle+followEvery) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// readTail emits what was appended since the last call; more says whether there was anything.
func (l *logLister) readTail(ctx context.Context, tail *dumplog.Tail, emit func(*logBatch) error) (more bool,
	err error) {
	b := l.spare.get(newLogBatch)
	if !l.headed {
		l.head(b)
	}
	for rec, err := range tail.Records(ctx) {
		var dmg *dumplog.DamageError
		if err != nil && !errors.As(err, &dmg) {
			return more, err
		}
		more = true
		if dmg != nil {
			l.damage(b, dmg)
			continue
		}
		if l.f.active && rec.Type != dumplog.RecordEntry {
			l.learn(&rec)
			continue
		}
		l.keep(b, rec)
		it := &b.items[len(b.items)-1]
		it.replacedTo = l.learn(&rec)
		if len(b.arena) >= batchBytes || len(b.items) >= batchItems {
			if err := emit(b); err != nil {
				return more, err
			}
			b = l.spare.get(newLogBatch)
		}
	}
	return more, emit(b)
}

// learn updates the commit index and the last index from a record. It returns the last index that an entry replaces
// after the end of the first reading, 0 if none.
func (l *logLister) learn(rec *dumplog.Record) (replacedTo uint64) {
	switch rec.Type {
	case dumplog.RecordState:
		if h, err := dumplog.DecodeHardState(rec.Data); err == nil {
			l.commit.Store(max(l.commit.Load(), h.Commit))
		}
	case dumplog.RecordSnapshot:
		if s, err := dumplog.DecodeSnapshotRecord(rec.Data); err == nil {
			l.commit.Store(max(l.commit.Load(), s.Index))
		}
	case dumplog.RecordEntry:
		if e, err := rec.Entry(); err == nil {
			if e.Index <= l.lastIndex {
				replacedTo = l.lastIndex
			}
			l.lastIndex = e.Index
		}
	}
	return replacedTo
}
