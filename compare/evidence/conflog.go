package evidence

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/memory"
)

// What is kept of the logs of one run. All sources have equal parts of it, so that many small logs take no more than a
// large one.
const (
	keptConfBytes = 512 << 20
	// leastConfBytes is the part that a source has at least.
	leastConfBytes = 64 << 10
	// confEntryBytes is what a conf change takes besides its context, which is kept as bytes and as what they say.
	confEntryBytes = 250
	// shownPlaces is how many places are named of what there is too much of.
	shownPlaces = 20
)

// confLog collects the conf changes of a log, segment by segment, side by side. When there are more than fit, it only
// counts them.
type confLog struct {
	mu    sync.Mutex
	left  int64
	parts []confPart
}

// confPart is what one segment holds.
type confPart struct {
	entries []ConfEntry
	n       int
	first   uint64
	last    uint64
	places  []dumplog.Pos
}

func newConfLog(segments, sources int) *confLog {
	kept := memory.Conf(keptConfBytes)
	return &confLog{left: max(kept/int64(max(sources, 1)), leastConfBytes), parts: make([]confPart, segments)}
}

// note takes an entry of segment i, which is kept if it is a conf change.
func (c *confLog) note(i int, e *dumplog.Entry) {
	if e.Type != dumplog.EntryConfChange {
		return
	}
	p := &c.parts[i]
	if p.n++; p.n == 1 || e.Index < p.first {
		p.first = e.Index
	}
	p.last = max(p.last, e.Index)
	if len(p.places) < shownPlaces {
		p.places = append(p.places, e.Pos)
	}
	if !c.take(confEntryBytes + 2*int64(len(e.Data))) {
		p.entries = nil
		return
	}
	own := *e
	own.Data = bytes.Clone(e.Data)
	if r, err := own.Decode(); err == nil && r.ConfChange != nil {
		p.entries = append(p.entries, ConfEntry{Pos: e.Pos, Term: e.Term, Index: e.Index, Change: *r.ConfChange})
	}
}

// take counts what a conf change takes; it is false from when there are too many of them.
func (c *confLog) take(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left >= 0 {
		c.left -= n
	}
	return c.left >= 0
}

// TooManyConfChangesError says that a log holds more conf changes than are looked at.
type TooManyConfChangesError struct {
	// Changes is their number, First and Last the lowest and the highest raft index, Places the first of them.
	Changes     int
	First, Last uint64
	Places      []dumplog.Pos
}

// Error counts them and says where they are.
func (e *TooManyConfChangesError) Error() string {
	places := make([]string, len(e.Places))
	for i, p := range e.Places {
		places[i] = p.String()
	}
	return fmt.Sprintf("the log holds %d conf changes from entry %d to %d, more than are examined. The first are "+
		"at %s", e.Changes, e.First, e.Last, strings.Join(places, ", "))
}

// effective joins the membership changes of all segments and drops those that a later append replaced.
func (c *confLog) effective(s *dumplog.Summary) ([]ConfEntry, error) {
	if c.left < 0 {
		return nil, c.tooMany()
	}
	at := map[string]int{}
	for i := range s.Segments {
		at[s.Segments[i].Name] = i
	}
	// Both lists are in physical order, so what comes after a change is a tail of the overwrites; low is the lowest
	// index of such a tail.
	low := make([]uint64, len(s.Overwrites)+1)
	low[len(s.Overwrites)] = math.MaxUint64
	total := 0
	for i := len(s.Overwrites) - 1; i >= 0; i-- {
		low[i] = min(low[i+1], s.Overwrites[i].Index)
	}
	for i := range c.parts {
		total += len(c.parts[i].entries)
	}
	if total == 0 {
		return nil, nil
	}
	out, next := make([]ConfEntry, 0, total), 0
	for i := range c.parts {
		for _, e := range c.parts[i].entries {
			for next < len(s.Overwrites) && cmp.Or(cmp.Compare(at[s.Overwrites[next].Segment], i),
				cmp.Compare(s.Overwrites[next].Offset, e.Pos.Offset)) <= 0 {
				next++
			}
			if low[next] > e.Index {
				out = append(out, e)
			}
		}
		c.parts[i].entries = nil
	}
	return out, nil
}

func (c *confLog) tooMany() error {
	e := &TooManyConfChangesError{}
	for i := range c.parts {
		p := &c.parts[i]
		if p.n == 0 {
			continue
		}
		if e.Changes == 0 || p.first < e.First {
			e.First = p.first
		}
		e.Changes, e.Last = e.Changes+p.n, max(e.Last, p.last)
		e.Places = append(e.Places, p.places[:min(len(p.places), shownPlaces-len(e.Places))]...)
	}
	return e
}
