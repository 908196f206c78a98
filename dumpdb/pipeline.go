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
	if runtime.GOMAXPROCS(0) > 1 && !b.Inline {
		if depth := db.leafDepth(b.Root); depth >= 2 {
			s, marks := newSink(), slices.Clone(used)
			err := db.parallel(ctx, b, want, marks, depth-1, s)
			if err == nil {
				copy(used, marks)
				return s, nil, nil
			}
			if !errors.Is(err, errDamaged) {
				return nil, nil, err
			}
		}
	}
	return db.sequential(ctx, b, want, used, newSink())
}

// leafRows is how many rows count as one leaf, taskRows how many the leaves of one branch page have at most: more are
// not read in parallel, where many portions are in memory.
const (
	leafRows = 512
	taskRows = 1 << 18
)

func (db *DB) sequential(ctx context.Context, b *bucket, want span, used bitmap, to sink) (sink, []*DamageError,
	error) {
	var damage []*DamageError
	s := db.newScan(ctx, b.Name)
	s.used, s.want = used, want
	s.onDamage = func(d *DamageError) bool { damage = append(damage, d); return true }
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
	s.walk(b)
	to.merge(p)
	return to, damage, s.err
}

// leafDepth follows the left edge. It returns 0 if the root is a leaf or the edge is damaged.
func (db *DB) leafDepth(root uint64) int {
	r := db.reader()
	ref := []elem{{child: root}}
	for depth := range maxDepth {
		p, dmg := r.page(ref, 0)
		if dmg != nil {
			return 0
		}
		if p.flags == flagLeaf {
			return depth
		}
		elems, _ := p.parseElems(nil, nil)
		if p.flags != flagBranch || len(elems) == 0 {
			return 0
		}
		ref = elems[:1]
	}
	return 0
}

func (db *DB) parallel(ctx context.Context, b *bucket, want span, used bitmap, unitDepth int, to sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := runtime.GOMAXPROCS(0)
	todo, order := make(chan *task, 2*workers), make(chan *task, 4*workers)
	var wg sync.WaitGroup
	var damaged atomic.Bool
	fail := func(*DamageError) bool { damaged.Store(true); cancel(errDamaged); return false }
	for range workers {
		wg.Go(func() { db.work(ctx, b, want, used, unitDepth, todo, fail) })
	}
	wg.Go(func() {
		defer close(todo)
		defer close(order)
		s := db.newScan(ctx, b.Name)
		s.used, s.want, s.onDamage = used, want, fail
		s.onLeaf = func(*leaf) bool { return fail(nil) } // a leaf above the others
		s.unitDepth, s.onUnit = unitDepth, func(id uint64, sp span) bool {
			t := &task{page: id, span: span{slices.Clone(sp.first), slices.Clone(sp.end)}, portion: to.newPortion(),
				done: make(chan struct{})}
			return send(ctx, order, t) && send(ctx, todo, t)
		}
		s.tree(b.Root)
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
func (db *DB) work(ctx context.Context, b *bucket, want span, used bitmap, depth int, todo <-chan *task,
	fail func(*DamageError) bool) {
	s := db.newScan(ctx, b.Name)
	s.used, s.want, s.onDamage = used, want, fail
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
