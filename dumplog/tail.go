package dumplog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Tail reads a log while a server writes it: each call of Records continues where the previous one ended. It takes no
// lock and opens for reading only, so the server does not notice. Files are open only while an iterator runs.
//
// A record that is being written looks like damage. So Tail reports damage in the last segment only when a later
// segment exists, or when the damage has not changed for the time Settle.
type Tail struct {
	// Settle is how long damage at the end must last before it is reported; 0 means one second.
	Settle time.Duration

	dir     string
	started bool
	seq     uint64
	at      tailState
	// held is damage seen first at heldAt and not reported yet. reported is the last reported damage at the end.
	held, reported Pos
	heldAt         time.Time
	now            func() time.Time
}

// tailState is the position of a segReader, so that another one can continue there.
type tailState struct {
	off, headEnd        int64
	chain               uint32
	chained             bool
	lastIndex, lastTerm uint64
}

// NewTail returns a Tail that starts with the first segment of a WAL folder.
func NewTail(dir string) *Tail { return &Tail{dir: dir, now: time.Now} }

// Records yields the records appended since the last call. It yields damage as Log.Records does, but without the lost
// indexes, since later records do not exist yet. Any other error ends the iteration; the next call tries again.
func (t *Tail) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l, err := Open(t.dir)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for i, s := range l.segs {
			if t.started && s.seq < t.seq {
				continue
			}
			if !t.enter(s, yield) {
				return
			}
			if more, err := t.segment(ctx, s, l.nextSegment(i), yield); err != nil {
				yield(Record{}, err)
				return
			} else if !more {
				return
			}
		}
	}
}

// enter moves to a segment, unless it is the one where reading stopped.
func (t *Tail) enter(s *segFile, yield func(Record, error) bool) bool {
	if t.started && s.seq == t.seq {
		if s.size >= t.at.off {
			return true
		}
		d := &DamageError{Pos: Pos{Segment: s.name, Offset: s.size}, Kind: DamageTruncated, Len: t.at.off - s.size,
			Err: errors.New("the file has become shorter than what was already read")}
		t.at.off, t.at.chained = s.size, false
		return yield(Record{}, d)
	}
	prev, first := t.at, !t.started
	ok := true
	switch head := (Pos{Segment: s.name}); {
	case first:
	case s.seq != t.seq+1:
		d := &DamageError{Pos: head, Kind: DamageMissingSegment,
			Err: fmt.Errorf("%d segment(s) missing before this one", s.seq-t.seq-1)}
		serverDoes(d, s.last)
		ok = yield(Record{}, d)
	case prev.chained && s.seeded && s.seed != prev.chain:
		d := &DamageError{Pos: head, Kind: DamageChain,
			Err: fmt.Errorf("the CRC record says %08x, the previous segment ends with %08x", s.seed, prev.chain)}
		serverDoes(d, s.last)
		ok = yield(Record{}, d)
	}
	t.started, t.seq, t.at = true, s.seq, tailState{}
	return ok
}

// segment continues reading one segment. more is false if the caller stops or if damage is held back.
func (t *Tail) segment(ctx context.Context, s, next *segFile, yield func(Record, error) bool) (more bool, err error) {
	r, err := openSegment(ctx, s, next)
	if err != nil {
		return false, err
	}
	defer r.close()
	if a := t.at; a.off > 0 {
		r.off, r.dataEnd, r.headEnd, r.chain, r.chained, r.lastIndex, r.lastTerm = a.off, a.off, a.headEnd, a.chain,
			a.chained, a.lastIndex, a.lastTerm
	}
	var it item
	for {
		err := r.step(&it)
		if errors.Is(err, io.EOF) {
			t.held = Pos{}
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if d := it.dmg; d != nil && d.Pos == t.reported {
			continue
		} else if d != nil && d.Kind != DamagePadding && s.last && !t.hasSettled(d.Pos) {
			return false, nil
		}
		if r.done && s.last { // no valid record follows: a server that starts cuts here and appends
			t.reported = it.dmg.Pos
		} else if r.pending == nil { // otherwise the record belongs to the next step
			t.at = tailState{off: r.off, headEnd: r.headEnd, chain: r.chain, chained: r.chained, lastIndex: r.lastIndex,
				lastTerm: r.lastTerm}
		}
		if it.dmg != nil {
			if !yield(it.rec, it.dmg) {
				return false, nil
			}
			continue
		}
		if it.ok && !yield(it.rec, nil) {
			return false, nil
		}
	}
}

// hasSettled reports whether the damage has lasted long enough.
func (t *Tail) hasSettled(p Pos) bool {
	settle := t.Settle
	if settle <= 0 {
		settle = time.Second
	}
	if t.held != p {
		t.held, t.heldAt = p, t.now()
		return false
	}
	return t.now().Sub(t.heldAt) >= settle
}
