package replay

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// repeat is a request that the merged log holds twice.
type repeat struct {
	// index is that of the second entry, distance how many entries it is after the first one, length how many entries
	// are repeated.
	index            uint64
	distance, length int
	what             string
}

// recent are the last entries of the merged log, in which a repeated request is looked for.
type recent struct {
	items [maxShift]*item
	n     int
}

// note returns how many entries before it the same request is in the log, 0 for none. Every proposal has its own
// request ID (idutil.Generator, all lines), and raft never adds an entry twice.
func (c *recent) note(it *item) (distance int) {
	own := it.err == nil && it.req != nil && it.req.Header.ID != 0 && len(it.others) == 0
	for d := 1; own && d <= min(c.n, len(c.items)); d++ {
		o := c.items[(c.n-d)%len(c.items)]
		if o.entry.Index+uint64(d) == it.entry.Index && o.proposes(it) {
			distance = d
			break
		}
	}
	c.items[c.n%len(c.items)] = it
	c.n++
	return distance
}

// sameRequest is the last entry before with the request of another one, nil if none of the recent ones has it.
func (c *recent) sameRequest(v *item) *item {
	for d := 1; d <= min(c.n, len(c.items)); d++ {
		if o := c.items[(c.n-d)%len(c.items)]; o.proposes(v) {
			return o
		}
	}
	return nil
}

// proposes reports whether the entry is the same proposal as another one that decodes.
func (it *item) proposes(o *item) bool {
	return it.err == nil && it.req != nil && it.req.Header.ID == o.req.Header.ID &&
		bytes.Equal(it.entry.Data, o.entry.Data)
}

// noteRepeat records the first requests that the log holds twice, at most maxShift entries apart.
func (s *Survey) noteRepeat(it *item) {
	d := s.recent.note(it)
	switch p := s.repeat; {
	case d == 0:
	case p == nil:
		s.repeat = &repeat{index: it.entry.Index, distance: d, length: 1,
			what: fmt.Sprintf("%d/%d %s", it.entry.Term, it.entry.Index, s.describe(it.req))}
	case d == p.distance && p.length < d && it.entry.Index == p.index+uint64(p.length):
		p.length++
	}
}

// repeated returns the shift that a repeated request shows where logs agree: a log that holds the second one has an
// entry that no leader gave that index, and so have those that agree with it about later ones. nil if no request is
// repeated.
func (r *Result) repeated() *Shift {
	p := r.Survey.repeat
	if p == nil || firstDiff(r) != nil {
		return nil
	}
	s := &Shift{Index: p.index, Missing: p.length, Added: true, Repeated: true, What: p.what,
		Instead: "the entry that follows"}
	end := uint64(0)
	for i, m := range r.Members {
		if m.Member.HasLog() && m.Member.WAL.Holds(p.index) {
			s.Long, end = append(s.Long, i), max(end, endOfStretch(&m.Member.WAL.Summary, p.index))
		}
	}
	for grown := true; grown; {
		grown = false
		for i, m := range r.Members {
			if !m.Member.HasLog() || slices.Contains(s.Long, i) {
				continue
			}
			if from := firstAfter(&m.Member.WAL.Summary, p.index); from <= min(end, m.Member.LastIndex()) {
				s.Long, grown = append(s.Long, i), true
				end = max(end, endOfStretch(&m.Member.WAL.Summary, from))
			}
		}
	}
	slices.Sort(s.Long)
	return s
}

// firstAfter is the first index from one on at which a log holds an entry, above its end if there is none.
func firstAfter(s *dumplog.Summary, index uint64) uint64 {
	index = max(index, s.FirstIndex)
	for _, j := range s.Jumps {
		if j.From <= index && index <= j.To {
			index = j.To + 1
		}
	}
	return index
}

// endOfStretch is the last index up to which a log holds every entry from one on.
func endOfStretch(s *dumplog.Summary, index uint64) uint64 {
	for _, j := range s.Jumps {
		if j.From > index {
			return j.From - 1
		}
	}
	return s.LastIndex
}
