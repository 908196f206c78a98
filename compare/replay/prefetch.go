package replay

import (
	"iter"
)

// Values cross a channel in batches: as many that the hand-over costs nothing against the work, and as few that large
// values take little memory.
const (
	batch      = 256
	batchBytes = 1 << 20
	// maxFull is how many batches wait to be taken.
	maxFull = 2
	// prefetched is how many values the sequence may have made after the last value that was taken: those of its batch,
	// of the batches that wait, and of the batch being filled.
	prefetched = (maxFull + 2) * batch
)

// prefetch runs a sequence in another goroutine and returns its values in batches. So decoding the log and reading each
// database overlap with stepping the models. At most a few batches are in memory, and their memory is used again.
// Values must not be reused by the sequence. Stop ends the goroutine; it must be called.
type prefetch[T any] struct {
	full chan []T
	// free are batches whose values have been taken.
	free chan []T
	quit chan struct{}
	done chan struct{}
	cur  []T
	pos  int
}

// startPrefetch begins to read ahead. size is about how much memory a value takes, in bytes; nil where that is little.
func startPrefetch[T any](seq iter.Seq[T], size func(T) int) *prefetch[T] {
	a := &prefetch[T]{full: make(chan []T, maxFull), free: make(chan []T, maxFull+1), quit: make(chan struct{}),
		done: make(chan struct{})}
	go func() {
		defer close(a.done)
		defer close(a.full)
		out, taken := make([]T, 0, batch), 0
		for v := range seq {
			if out = append(out, v); size != nil {
				taken += size(v)
			}
			if len(out) < batch && taken < batchBytes {
				continue
			}
			select {
			case a.full <- out:
			case <-a.quit:
				return
			}
			out, taken = a.room(), 0
		}
		select {
		case a.full <- out:
		case <-a.quit:
		}
	}()
	return a
}

// room returns memory for a batch.
func (a *prefetch[T]) room() []T {
	select {
	case b := <-a.free:
		return b[:0]
	default:
		return make([]T, 0, batch)
	}
}

func (a *prefetch[T]) giveBack(b []T) {
	select {
	case a.free <- b:
	default:
	}
}

// next returns the next value; false at the end.
func (a *prefetch[T]) next() (v T, ok bool) {
	if p := a.nextInBatch(); p != nil {
		return *p, true
	}
	return v, false
}

// nextInBatch is next without a copy; nil at the end. The value is valid until the next call.
func (a *prefetch[T]) nextInBatch() *T {
	for a.pos == len(a.cur) {
		b, more := <-a.full
		if !more {
			return nil
		}
		if a.cur != nil {
			a.giveBack(a.cur)
		}
		a.cur, a.pos = b, 0
	}
	a.pos++
	return &a.cur[a.pos-1]
}

// stop ends the goroutine and waits for it.
func (a *prefetch[T]) stop() {
	close(a.quit)
	<-a.done
}
