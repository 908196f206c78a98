package replay

import (
	"iter"
	"math"
	"runtime"
)

const (
	// partRevisions is how many main revisions the first part of a span has, partRecords how many records a part has at
	// most. Where parts have fewer than fewRecords, as at compacted revisions, the next ones are longer.
	partRevisions = 1 << 13
	partRecords   = 1 << 15
	fewRecords    = 1 << 12
	// partBytes is how much memory the keys of a part take at most, in bytes.
	partBytes = 8 << 20
)

// span is the main revisions from from up to but not including end.
type span struct{ from, end int64 }

func (s span) len() int64 { return s.end - s.from }

// parts reads a span of a database without damage in several goroutines, each a part of the revisions. So a pass over
// many records, where each takes little work, uses all cores.
type parts[T any] struct {
	// read makes a value of the records of a part, in the memory of a value that is not used any more. It ends after
	// more than most records; count is how many it has read.
	read func(part span, most int, into T) (made T, count int)
	// down is true where the newest part comes first.
	down bool
	// size is how many revisions the next part has, most how many records.
	size int64
	most int

	left span
	open []*openPart[T]
	free []T
}

// openPart is a part that is being read.
type openPart[T any] struct {
	span
	made  T
	count int
	done  chan struct{}
}

func newParts[T any](read func(part span, most int, into T) (T, int)) *parts[T] {
	return &parts[T]{read: read, size: partRevisions, most: partRecords}
}

// of yields the parts of a span in order. A value is valid until the next one.
func (p *parts[T]) of(whole span) iter.Seq2[span, T] {
	return func(yield func(span, T) bool) {
		p.left = whole
		defer func() {
			for _, o := range p.open {
				<-o.done
			}
			p.open = nil
		}()
		for {
			for len(p.open) <= runtime.GOMAXPROCS(0) && p.left.len() > 0 {
				p.open = append(p.open, p.start(p.cut()))
			}
			if len(p.open) == 0 {
				return
			}
			o := p.open[0]
			if <-o.done; o.count > p.most && o.len() > 1 {
				p.divide(o)
				continue
			}
			p.open = p.open[1:]
			switch {
			case o.count < fewRecords:
				p.size += min(o.len(), math.MaxInt64-p.size)
			case o.count > p.most/2:
				p.size = max(p.size/2, 1)
			}
			if !yield(o.span, o.made) {
				return
			}
			p.free = append(p.free, o.made)
		}
	}
}

// cut takes the next part of what is left.
func (p *parts[T]) cut() (next span) {
	n := min(p.size, p.left.len())
	if p.down {
		next = span{p.left.end - n, p.left.end}
		p.left.end = next.from
	} else {
		next = span{p.left.from, p.left.from + n}
		p.left.from = next.end
	}
	return next
}

// divide reads the first part, which has too many records, as two.
func (p *parts[T]) divide(o *openPart[T]) {
	p.free = append(p.free, o.made)
	middle := o.from + o.len()/2
	a, b := p.start(span{o.from, middle}), p.start(span{middle, o.end})
	if p.down {
		a, b = b, a
	}
	p.open = append([]*openPart[T]{a, b}, p.open[1:]...)
	p.size = max(o.len()/2, 1)
}

func (p *parts[T]) start(s span) *openPart[T] {
	o := &openPart[T]{span: s, done: make(chan struct{})}
	var into T
	if n := len(p.free); n > 0 {
		into, p.free = p.free[n-1], p.free[:n-1]
	}
	most := p.most
	if s.len() == 1 {
		most = math.MaxInt
	}
	go func() {
		defer close(o.done)
		o.made, o.count = p.read(s, most, into)
	}()
	return o
}
