package cli

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// job is one batch in progress: work fills out and closes done.
type job[T any] struct {
	in   T
	out  []byte
	err  error
	done chan struct{}
}

// queued bounds the batches in progress, and with them the memory.
const queued = 4

// spares reuses values: otherwise listings would allocate as much as they write.
type spares[T any] chan T

func newSpares[T any]() spares[T] { return make(spares[T], 2*queued) }

// get returns a spare value, or a fresh one.
func (s spares[T]) get(fresh func() T) T {
	select {
	case v := <-s:
		return v
	default:
		return fresh()
	}
}

func (s spares[T]) put(v T) {
	select {
	case s <- v:
	default:
	}
}

// ordered runs produce, work and write concurrently. produce emits batches. Several goroutines append the bytes of each
// to a given buffer. write gets the bytes in the order of the batches; then the buffer is reused. The first error ends
// all of them and is returned.
func ordered[T any](ctx context.Context, produce func(context.Context, func(T) error) error,
	work func(T, []byte) ([]byte, error), write func([]byte) error) error {
	g, ctx := errgroup.WithContext(ctx)
	buffers := newSpares[[]byte]()
	todo, order := make(chan *job[T], queued), make(chan *job[T], queued)
	g.Go(func() error {
		defer close(todo)
		defer close(order)
		return produce(ctx, func(in T) error {
			j := &job[T]{in: in, done: make(chan struct{})}
			for _, c := range []chan *job[T]{order, todo} {
				select {
				case c <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range 2 {
		g.Go(func() error {
			for j := range todo {
				j.out, j.err = work(j.in, buffers.get(newBuffer)[:0])
				close(j.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		for j := range order {
			select {
			case <-j.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if j.err != nil {
				return j.err
			}
			if err := write(j.out); err != nil {
				return err
			}
			buffers.put(j.out)
		}
		return nil
	})
	return g.Wait()
}

func newBuffer() []byte { return make([]byte, 0, 2*batchBytes) }
