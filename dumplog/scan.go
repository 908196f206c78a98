package dumplog

import (
	"context"
	"runtime"
	"sort"
	"sync"
)

// A segment of more than hugeSegment bytes may be one record, which must be in memory as a whole. So only one of them
// is read at a time. A server begins a new segment after 64 MB.
const hugeSegment = 128 << 20

var oneHuge sync.Mutex

// Scan reads the whole log once, the segments side by side on all cores, and returns what it shows. Damage is in the
// Summary, not in the error, which is that of a cancelled context or a *TooManyMarksError. Memory does not grow with
// the number of entries.
func (l *Log) Scan(ctx context.Context) (*Summary, error) { return l.ScanWith(ctx, nil) }

// ScanWith is Scan with a callback for every entry. It calls visit once per segment, in any order, with the segment's
// position in the log. The function that visit returns is called with the good entries of that segment in physical
// order, from one goroutine. The Entry and its Data are valid only during the call. Overwritten is not set yet; it
// follows from the Summary.
func (l *Log) ScanWith(ctx context.Context, visit func(segment int) func(*Entry)) (*Summary, error) {
	digests := make([]*digest, len(l.segs))
	errs := make([]error, len(l.segs))
	listed := l.newMarks()
	work := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(l.segs)) {
		wg.Go(func() {
			for i := range work {
				var see func(*Entry)
				if visit != nil {
					see = visit(i)
				}
				digests[i], errs[i] = l.digest(ctx, i, listed, see)
			}
		})
	}
	for i := range l.segs {
		work <- i
	}
	close(work)
	wg.Wait()
	o := newOrder(l)
	o.bare = listed.tooMany()
	for i, d := range digests {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if o.bare {
			d.withoutMarks()
		}
		o.add(d)
	}
	return o.finish(listed.max), nil
}

func (l *Log) digest(ctx context.Context, segment int, listed *marks, see func(*Entry)) (*digest, error) {
	s := l.segs[segment]
	if s.size > hugeSegment {
		oneHuge.Lock()
		defer oneHuge.Unlock()
	}
	return digestSegment(ctx, s, l.nextSegment(segment), listed, see)
}

// Segments returns the number of segments.
func (l *Log) Segments() int { return len(l.segs) }

// nextSegment returns the segment that continues segment i, nil if there is none.
func (l *Log) nextSegment(i int) *segFile {
	if i+1 < len(l.segs) && l.segs[i+1].seq == l.segs[i].seq+1 && !l.segs[i+1].foreign {
		return l.segs[i+1]
	}
	return nil
}

// Committed returns the last index known to be committed, at most the last entry. It is the highest index of the
// HardStates, the snapshot records and known, such as a consistent index or the commit index of other members.
func (s *Summary) Committed(known ...uint64) uint64 {
	c := s.MaxCommit
	for _, k := range known {
		c = max(c, k)
	}
	for i := range s.Snapshots {
		c = max(c, s.Snapshots[i].Index)
	}
	return min(c, max(s.LastIndex, s.lastSnapshot()))
}

func (s *Summary) lastSnapshot() (index uint64) {
	for i := range s.Snapshots {
		index = max(index, s.Snapshots[i].Index)
	}
	return index
}

// SnapshotAt returns the WAL's snapshot record for a .snap file of this term and index, nil if there is none. Without
// one, etcd 3.3.21, 3.4.8 and later do not use the file.
func (s *Summary) SnapshotAt(term, index uint64) *SnapshotRecord {
	for i := range s.Snapshots {
		if r := &s.Snapshots[i]; r.Term == term && r.Index == index {
			return r
		}
	}
	return nil
}

// TermAt returns the term of an entry of the effective log, 0 if the log does not contain the index.
func (s *Summary) TermAt(index uint64) uint64 {
	i := sort.Search(len(s.Terms), func(i int) bool { return s.Terms[i].Last >= index })
	if i == len(s.Terms) || s.Terms[i].First > index {
		return 0
	}
	return s.Terms[i].Term
}
