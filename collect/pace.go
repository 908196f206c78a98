package collect

import (
	"context"
	"fmt"
	"io"
	"time"
)

// pace limits the rate of reading and counts the bytes.
type pace struct {
	ctx      context.Context
	rate     int64 // bytes per second, 0: no limit
	progress func(string)
	started  time.Time
	paid     int64 // bytes since started
	told     time.Time
}

// piece bounds one read, so that a low rate is kept without long bursts.
const piece = 64 << 10

func (p *pace) reader(what string, size int64, r io.Reader) io.Reader {
	return &paced{p: p, r: r, what: what, size: size}
}

type paced struct {
	p          *pace
	r          io.Reader
	what       string
	size, done int64
}

// Read waits as long as the rate requires.
func (r *paced) Read(b []byte) (int, error) {
	if err := r.p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(b[:min(len(b), piece)])
	r.done += int64(n)
	r.tell()
	if e := r.p.wait(int64(n)); e != nil {
		return n, e
	}
	return n, err
}

func (p *pace) wait(n int64) error {
	if p.rate <= 0 {
		return nil
	}
	// A rate that was not used for a minute is not saved up.
	if now := time.Now(); p.started.IsZero() || now.Sub(p.started) > time.Minute {
		p.started, p.paid = now, 0
	}
	p.paid += n
	due := p.started.Add(time.Duration(float64(p.paid) / float64(p.rate) * float64(time.Second)))
	rest := time.Until(due)
	if rest <= 0 {
		return nil
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-p.ctx.Done():
		return p.ctx.Err()
	case <-t.C:
		return nil
	}
}

// tellEvery is the interval of progress messages.
const tellEvery = 200 * time.Millisecond

func (r *paced) tell() {
	if r.p.progress == nil || time.Since(r.p.told) < tellEvery {
		return
	}
	r.p.told = time.Now()
	r.p.progress(fmt.Sprintf("%s: %d of %d MiB", r.what, r.done>>20, r.size>>20))
}

type zeros struct{}

// Read fills with zeros.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
