// Package progress shows how far long work has come: bytes, percent, rate and time left of reading or copying, and how
// long a wait lasts. The context carries the work, so that nested readers need no extra parameter. Without a display
// nothing is counted.
package progress

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// Display draws one line for all current work.
type Display struct {
	// Patience is how long work must last before it is shown; New sets a default.
	Patience time.Duration

	draw func(line string)

	mu     sync.Mutex
	works  []*Work
	closed bool
	stop   chan struct{} // ends the drawing; nil if nothing is drawn
}

const (
	// patience is how long work must take before it is shown, every how often the line is drawn.
	patience = 300 * time.Millisecond
	every    = 250 * time.Millisecond
)

// New returns a display that calls draw with its line, a few times per second while there is work.
func New(draw func(line string)) *Display { return &Display{Patience: patience, draw: draw} }

// Close ends the drawing permanently. Later work is counted but not shown.
func (d *Display) Close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.end()
}

func (d *Display) end() {
	if d.stop != nil {
		close(d.stop)
		d.stop = nil
	}
}

// Work is one task that takes time. All methods of a nil Work do nothing.
type Work struct {
	display *Display
	what    string
	total   int64
	limit   time.Duration // of a wait, else 0
	began   time.Time
	done    atomic.Int64
}

type displayKey struct{}

type workKey struct{}

// With returns a context whose work is shown on the display.
func With(ctx context.Context, d *Display) context.Context {
	return context.WithValue(ctx, displayKey{}, d)
}

// Begin starts work of total bytes, 0 if the number is not known. Readers that use the returned context count towards
// it. The caller calls End.
func Begin(ctx context.Context, what string, total int64) (context.Context, *Work) {
	d, _ := ctx.Value(displayKey{}).(*Display)
	if d == nil {
		return ctx, nil
	}
	w := d.add(&Work{what: what, total: total})
	return context.WithValue(ctx, workKey{}, w), w
}

// Wait starts waiting for something that may take until the deadline of the context.
func Wait(ctx context.Context, what string) *Work {
	d, _ := ctx.Value(displayKey{}).(*Display)
	if d == nil {
		return nil
	}
	limit := time.Duration(-1)
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Until(end), 0)
	}
	return d.add(&Work{what: what, limit: limit})
}

// From returns the work of the context, nil if there is none.
func From(ctx context.Context) *Work {
	w, _ := ctx.Value(workKey{}).(*Work)
	return w
}

// Carry returns ctx with the work of another context.
func Carry(ctx, from context.Context) context.Context {
	if w := From(from); w != nil {
		return context.WithValue(ctx, workKey{}, w)
	}
	return ctx
}

// Add counts bytes.
func (w *Work) Add(n int) {
	if w != nil {
		w.done.Add(int64(n))
	}
}

// End removes the work from the display.
func (w *Work) End() {
	if w == nil {
		return
	}
	d := w.display
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, x := range d.works {
		if x == w {
			d.works = append(d.works[:i], d.works[i+1:]...)
			break
		}
	}
	if len(d.works) == 0 {
		d.end()
	}
}

// Reader counts what is read through it.
func (w *Work) Reader(r io.Reader) io.Reader {
	if w == nil {
		return r
	}
	return &counted{w, r}
}

type counted struct {
	w *Work
	r io.Reader
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.w.Add(n)
	return n, err
}

func (d *Display) add(w *Work) *Work {
	w.display, w.began = d, time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.works = append(d.works, w)
	if d.stop == nil && !d.closed {
		d.stop = make(chan struct{})
		go d.run(d.stop)
	}
	return w
}

func (d *Display) run(stop chan struct{}) {
	t := time.NewTicker(max(min(every, d.Patience), time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-t.C:
			d.mu.Lock()
			if line := d.lineOf(now); line != "" && d.stop == stop {
				d.draw(line)
			}
			d.mu.Unlock()
		}
	}
}

// lineOf returns the line for all work that has lasted a while: the name of the first, and the total bytes.
func (d *Display) lineOf(now time.Time) string {
	var first *Work
	var done, total int64
	others, known := 0, true
	for _, w := range d.works {
		if now.Sub(w.began) < d.Patience {
			continue
		}
		if first == nil {
			first = w
		} else {
			others++
		}
		if w.limit == 0 {
			n := w.done.Load()
			if w.total > 0 {
				n = min(n, w.total)
			}
			done, total, known = done+n, total+w.total, known && w.total > 0
		}
	}
	if first == nil {
		return ""
	}
	what := first.what
	if others > 0 {
		what += fmt.Sprintf(" and %d more", others)
	}
	took := now.Sub(first.began)
	switch {
	case first.limit > 0:
		return fmt.Sprintf("%s: %s of at most %s", what, round(took), round(first.limit))
	case first.limit < 0:
		return fmt.Sprintf("%s: %s", what, round(took))
	case !known:
		total = 0
	}
	return what + ": " + bytesLine(done, total, took)
}

// bytesLine formats bytes, percent, rate and time left, as far as they are known.
func bytesLine(done, total int64, took time.Duration) string {
	rate := float64(done) / max(took.Seconds(), 0.001)
	parts := []string{plural.Size(done)}
	if total > 0 && done <= total { // data read twice has no percentage
		parts = []string{plural.Size(done) + " of " + plural.Size(total),
			fmt.Sprintf("%d %%", int64(100*(float64(done)/float64(total))))}
	}
	if done > 0 {
		parts = append(parts, plural.Size(int64(rate))+"/s")
		if total > done {
			left := float64(total-done) / rate
			parts = append(parts, round(time.Duration(min(left, 1e6)*float64(time.Second)))+" left")
		}
	}
	return strings.Join(parts, ", ")
}

func round(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
