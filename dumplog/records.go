package dumplog

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
)

// Records yields every physical record in order. At damage it yields a *DamageError and continues after it. With a CRC
// mismatch or an undecodable payload, the Record comes with the error as it is in the file; otherwise it is zero. Any
// other error (cancelled context) ends the iteration. Records first scans the whole log, because later records show
// what a damage has lost.
func (l *Log) Records(ctx context.Context) iter.Seq2[Record, error] { return l.RecordsOf(ctx, nil) }

// RecordsOf is Records for a caller that has already scanned the log. A nil Summary makes it call Scan. A nil Log has
// no records.
func (l *Log) RecordsOf(ctx context.Context, s *Summary) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if l == nil {
			return
		}
		if s == nil {
			var err error
			if s, err = l.Scan(ctx); err != nil {
				yield(Record{}, err)
				return
			}
		}
		c := chainCheck{foreign: map[string]bool{}}
		for _, seg := range l.segs {
			c.foreign[seg.name] = seg.foreign
		}
		l.walk(ctx, s, true, func(it *item, d *DamageError) bool {
			if d != nil {
				c.known = c.known && !d.losesEntries() && !d.harmless
				return yield(it.rec, d)
			}
			c.check(&it.rec)
			return yield(it.rec, nil)
		}, func(err error) { yield(Record{}, err) })
	}
}

// chainCheck checks CRC records, which only the previous segment can prove.
type chainCheck struct {
	segment string
	chain   uint32
	known   bool
	foreign map[string]bool
}

func (c *chainCheck) check(rec *Record) {
	if rec.Type == RecordCRC && c.segment != "" && c.known && !c.foreign[rec.Segment] && rec.Segment != c.segment {
		rec.ComputedCRC, rec.CRC = c.chain, CRCMatch
		if c.chain != rec.StoredCRC {
			rec.CRC = CRCMismatch
		}
	}
	c.segment, c.chain, c.known = rec.Segment, rec.ComputedCRC, rec.CRC != CRCMismatch
	if rec.Type == RecordCRC {
		c.chain, c.known = rec.StoredCRC, true
	}
	c.known = c.known && !c.foreign[rec.Segment]
}

// Entries yields every entry in physical order with Overwritten set. A nil Summary makes it call Scan. Damage is
// yielded as in Records. Segments of another member or cluster are left out, and so are entries whose CRC does not
// match. A nil Log has no entries.
func (l *Log) Entries(ctx context.Context, s *Summary) iter.Seq2[Entry, error] {
	return l.EntriesFrom(ctx, s, 0)
}

// EntriesFrom is Entries without the segments before the one with the first entry at or above index from. It may still
// yield earlier entries and damage of that segment.
func (l *Log) EntriesFrom(ctx context.Context, s *Summary, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if l == nil {
			return
		}
		if s == nil {
			var err error
			if s, err = l.Scan(ctx); err != nil {
				yield(Entry{}, err)
				return
			}
		}
		o := l.newOverwritten(s)
		var e Entry
		l.walkFrom(ctx, s, s.segmentOf(from), false, func(it *item, d *DamageError) bool {
			switch {
			case d != nil:
				return yield(Entry{}, d)
			case it.rec.Type != RecordEntry:
				return true
			}
			it.entry(&e)
			e.Overwritten = o.is(&e)
			return yield(e, nil)
		}, func(err error) { yield(Entry{}, err) })
	}
}

// walk steps through all segments in order. It calls use for every good record and every damage of s, until use returns
// false. A damage comes with the record that shows it, if there is one.
func (l *Log) walk(ctx context.Context, s *Summary, foreign bool, use func(*item, *DamageError) bool,
	fail func(error)) {
	l.walkFrom(ctx, s, 0, foreign, use, fail)
}

// segmentOf returns the position of the first segment with an entry at or above index. It returns 0 if appends replaced
// entries, since the segments are not in index order then.
func (s *Summary) segmentOf(index uint64) int {
	if len(s.Overwrites) > 0 {
		return 0
	}
	for i := range s.Segments {
		if s.Segments[i].LastEntry >= index {
			return i
		}
	}
	return 0
}

// walkFrom is walk from segment first.
func (l *Log) walkFrom(ctx context.Context, s *Summary, first int, foreign bool, use func(*item, *DamageError) bool,
	fail func(error)) {
	w := walker{damage: s.Damage, use: use}
	for len(w.damage) > 0 && slices.ContainsFunc(l.segs[:first],
		func(seg *segFile) bool { return seg.name == w.damage[0].Segment }) {
		w.damage = w.damage[1:]
	}
	for i, seg := range l.segs {
		if i < first {
			continue
		}
		if seg.foreign && !foreign {
			if !w.yieldUntil(seg.name, seg.size) {
				return
			}
			continue
		}
		if err := w.segment(ctx, seg, l.nextSegment(i)); err != nil {
			if !errors.Is(err, errStopped) {
				fail(err)
			}
			return
		}
	}
	for d := w.head(); d != nil && w.yieldUntil(d.Segment, d.Offset); d = w.head() {
	}
}

// errStopped reports that the caller of an iterator stopped.
var errStopped = errors.New("stopped")

type walker struct {
	damage []*DamageError // not yet yielded
	// sooner is what has to be yielded before damage: what is left of a place of which one was yielded with its record.
	sooner []*DamageError
	use    func(*item, *DamageError) bool
	none   item
}

// yieldUntil yields the damage at the head of the list up to an offset of a segment.
func (w *walker) yieldUntil(segment string, off int64) bool {
	for d := w.head(); d != nil && d.Segment == segment && d.Offset <= off; d = w.head() {
		w.none = item{}
		if len(w.sooner) > 0 {
			w.sooner = w.sooner[1:]
		} else {
			w.damage = w.damage[1:]
		}
		if !w.use(&w.none, d) {
			return false
		}
	}
	return true
}

// head is the damage to be yielded next, nil when there is none.
func (w *walker) head() *DamageError {
	switch {
	case len(w.sooner) > 0:
		return w.sooner[0]
	case len(w.damage) > 0:
		return w.damage[0]
	}
	return nil
}

func (w *walker) segment(ctx context.Context, seg, next *segFile) error {
	r, err := openSegment(ctx, seg, next)
	if err != nil { // the damage list has it
		return stopUnless(w.yieldUntil(seg.name, seg.size))
	}
	defer r.close()
	var it item
	for {
		err := r.step(&it)
		switch {
		case errors.Is(err, io.EOF):
			return stopUnless(w.yieldUntil(seg.name, r.size))
		case err != nil:
			return err
		case it.ok:
			if !w.yieldUntil(seg.name, it.rec.Offset) || !w.use(&it, nil) {
				return errStopped
			}
		case it.rec.Len > 0 && it.dmg != nil:
			if !w.yieldWith(&it) {
				return errStopped
			}
		}
	}
}

// yieldWith yields damage together with the record that shows it.
func (w *walker) yieldWith(it *item) bool {
	if !w.yieldUntil(it.dmg.Segment, it.dmg.Offset-1) {
		return false
	}
	for i, d := range w.damage {
		if d.Pos != it.dmg.Pos {
			break
		}
		if d.Kind == it.dmg.Kind {
			w.sooner, w.damage = w.damage[:i], w.damage[i+1:]
			return w.use(it, d)
		}
	}
	return true
}

func stopUnless(ok bool) error {
	if ok {
		return nil
	}
	return errStopped
}

// overwritten reports, in one pass in physical order, which entries a later record replaced.
type overwritten struct {
	at   map[string]int
	list []Overwrite
	// low[i] is the lowest index of any overwrite from i on.
	low []uint64
}

func (l *Log) newOverwritten(s *Summary) *overwritten {
	o := &overwritten{at: map[string]int{}, list: s.Overwrites, low: make([]uint64, len(s.Overwrites))}
	for i, seg := range l.segs {
		o.at[seg.name] = i
	}
	for i := len(o.list) - 1; i >= 0; i-- {
		o.low[i] = o.list[i].Index
		if i+1 < len(o.low) {
			o.low[i] = min(o.low[i], o.low[i+1])
		}
	}
	return o
}

func (o *overwritten) is(e *Entry) bool {
	for len(o.list) > 0 && !o.nextIsAfter(e) {
		o.list, o.low = o.list[1:], o.low[1:]
	}
	return len(o.low) > 0 && e.Index >= o.low[0]
}

// nextIsAfter reports whether the next overwrite comes after the entry.
func (o *overwritten) nextIsAfter(e *Entry) bool {
	p := o.list[0].Pos
	if p.Segment == e.Segment {
		return p.Offset > e.Offset
	}
	return o.at[p.Segment] > o.at[e.Segment]
}
