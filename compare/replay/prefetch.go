package replay

import (
	"iter"
)

// batch is how many values cross a channel at once: enough that the hand-over costs nothing against the work.
const batch = 256

// prefetch runs a sequence in another goroutine and returns its values in batches. So decoding the log and reading each
// database overlap with stepping the models. At most a few batches are in memory. Values must not be reused by the
// sequence. Stop ends the goroutine; it must be called.
type prefetch[T any] struct {
	full chan []T
	quit chan struct{}
	done chan struct{}
	cur  []T
	pos  int
}

func startPrefetch[T any](seq iter.Seq[T]) *prefetch[T] {
	a := &prefetch[T]{full: make(chan []T, 2), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		defer close(a.full)
		out := make([]T, 0, batch)
		for v := range seq {
			out = append(out, v)
			if len(out) < batch {
				continue
			}
			select {
			case a.full <- out:
			case <-a.quit:
				return
			}
			out = make([]T, 0, batch)
		}
		select {
		case a.full <- out:
		case <-a.quit:
		}
	}()
	return a
}

// next returns the next value; false at the end.
func (a *prefetch[T]) next() (v T, ok bool) {
	for a.pos == len(a.cur) {
		b, more := <-a.full
		if !more {
			return v, false
		}
		a.cur, a.pos = b, 0
	}
	v = a.cur[a.pos]
	a.pos++
	return v, true
}

// stop ends the goroutine and waits for it.
func (a *prefetch[T]) stop() {
	close(a.quit)
	<-a.done
}
