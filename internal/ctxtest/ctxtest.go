// Package ctxtest has contexts for tests of what ends early.
package ctxtest

import (
	"context"
	"sync/atomic"
)

// Ending is a context that ends once its error was asked for so many times.
type Ending struct {
	context.Context //nolint:containedctx // it is one
	left            atomic.Int64
}

// EndingAfter returns a context whose error is nil n times, and context.Canceled after that.
func EndingAfter(n int64) *Ending {
	c := &Ending{Context: context.Background()}
	c.left.Store(n)
	return c
}

// Err counts down.
func (c *Ending) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Left is how many times the error will still be nil; below 0 it has ended.
func (c *Ending) Left() int64 { return c.left.Load() }

// Asked is a context that does something each time its error is asked for.
type Asked struct {
	context.Context //nolint:containedctx // it is one
	// Do returns the error.
	Do func() error
}

// Err does it.
func (c Asked) Err() error { return c.Do() }
