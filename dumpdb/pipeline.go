package dumpdb

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// sink receives the rows of a bucket in portions. newPortion may be called from any goroutine. merge gets the portions
// in key order, one at a time.
type sink interface {
	newPortion() portion
	merge(portion)
}

// portion receives the leaves of one part of a tree in key order, from one goroutine.
type portion interface{ leaf(*leaf) }

// task is one branch page directly above the leaves, for one worker.
type task struct {
	page    uint64
	span    span
	portion portion
	done    chan struct{}
}

// errDamaged stops a parallel walk at the first damage, or at leaves of too many rows. Two workers find damage in no
// fixed order, so one goroutine walks such a tree again.
var errDamaged = errors.New("damage found")

// feed walks bucket b and passes its rows to a sink made by newSink, on all cores if the tree is big and sound. It
// marks the pages it has walked in used.
func (db *DB) feed(ctx context.Context, b *bucket, want span, used bitmap, newSink func() sink) (sink, []*DamageError,
	error) {
	f := feeder{db: db, b: b, want: want, used: used}
	if runtime.GOMAXPROCS(0) > 1 && !b.Inline {
		r := db.reader()
		if depth := r.leafDepth(b.Root); depth >= 2 {
			f.used = slices.Clone(used)
			s := newSink()
			err := f.parallel(ctx, depth-1, s)
			if err == nil {
				copy(used, f.used)
				return s, nil, nil
			}
			if !errors.Is(err, errDamaged) {
				return nil, nil, err
			}
			f.used = used
		}
	}
	return f.sequential(ctx, newSink())
}

// feeder walks the wanted part of one bucket, and marks in used the pages that it has walked.
type feeder struct {
	db   *DB
	b    *bucket
	want span
	used bitmap
}

// scan returns a walk of the wanted part, with its own buffers.
func (f *feeder) scan(ctx context.Context, onDamage func(*DamageError) bool) *scan {
	s := f.db.newScan(ctx, f.b.Name)
	s.used, s.want, s.onDamage = f.used, f.want, onDamage
	return s
}

// leafRows is how many rows count as one leaf, taskRows how many the leaves of one branch page have at most: more are
// not read in parallel, where many portions are in memory.
const (
	leafRows = 512
	taskRows = 1 << 18
)

func (f *feeder) sequential(ctx context.Context, to sink) (sink, []*DamageError, error) {
	var damage []*DamageError
	s := f.scan(ctx, func(d *DamageError) bool { damage = append(damage, d); return true })
	n, p := 0, to.newPortion()
	s.onLeaf = func(l *leaf) bool {
		// Merge now and then, so that portions stay small on trees of any shape.
		if n += 1 + len(l.elems)/leafRows; n >= 256 {
			to.merge(p)
			n, p = 0, to.newPortion()
		}
		p.leaf(l)
		return true
	}
	s.walk(f.b)
	to.merge(p)
	return to, damage, s.err
}

func (f *feeder) parallel(ctx context.Context, unitDepth int, to sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := runtime.GOMAXPROCS(0)
	todo, order := make(chan *task, 2*workers), make(chan *task, 4*workers)
	var wg sync.WaitGroup
	var damaged atomic.Bool
	fail := func(*DamageError) bool { damaged.Store(true); cancel(errDamaged); return false }
	for range workers {
		wg.Go(func() { f.work(ctx, unitDepth, todo, fail) })
	}
	wg.Go(func() {
		defer close(todo)
		defer close(order)
		s := f.scan(ctx, fail)
		s.onLeaf = func(*leaf) bool { return fail(nil) } // a leaf above the others
		s.unitDepth, s.onUnit = unitDepth, func(id uint64, sp span) bool {
			t := &task{page: id, span: span{slices.Clone(sp.first), slices.Clone(sp.end)}, portion: to.newPortion(),
				done: make(chan struct{})}
			return send(ctx, order, t) && send(ctx, todo, t)
		}
		s.tree(f.b.Root)
	})
	for t := range order {
		select {
		case <-t.done:
			to.merge(t.portion)
		case <-ctx.Done():
		}
	}
	wg.Wait()
	if damaged.Load() {
		return errDamaged
	}
	return ctx.Err()
}

func send(ctx context.Context, to chan<- *task, t *task) bool {
	select {
	case to <- t:
		return true
	case <-ctx.Done():
		return false
	}
}

// work walks the subtrees of todo with one set of buffers.
func (f *feeder) work(ctx context.Context, depth int, todo <-chan *task, fail func(*DamageError) bool) {
	s := f.scan(ctx, fail)
	for t := range todo {
		// A concurrent hash of the same file cannot be split up, so it must not become the last task that all wait for.
		runtime.Gosched()
		rows := 0
		s.onLeaf = func(l *leaf) bool {
			if rows += len(l.elems); rows > taskRows {
				return fail(nil)
			}
			t.portion.leaf(l)
			return true
		}
		if s.child([]elem{{child: t.page}}, 0, depth, t.span) {
			close(t.done)
		}
	}
}
