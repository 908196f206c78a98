package cli

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// job is one batch on its way: work fills out and closes done.
type job[T any] struct {
	in   T
	out  []byte
	err  error
	done chan struct{}
}

// queued bounds the batches under way, and with them the memory.
const queued = 4

// ordered runs produce, work and write at the same time: produce emits batches, several goroutines turn each into bytes, and write
// gets the bytes in the order of the batches. The first error of any of them ends all and is returned.
func ordered[T any](ctx context.Context, produce func(context.Context, func(T) error) error, work func(T) ([]byte, error), write func([]byte) error) error {
	g, ctx := errgroup.WithContext(ctx)
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
				j.out, j.err = work(j.in)
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
		}
		return nil
	})
	return g.Wait()
}
