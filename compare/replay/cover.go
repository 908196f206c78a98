package replay

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// part is a stretch of the merged log and the member whose log it is read from.
type part struct {
	member   int
	from, to uint64
}

// maxParts bounds the stretches: each reopens a segment.
const maxParts = 16

// log yields the merged log from about an index on, after the survey. The survey has read all logs in parallel; if no
// two of them differ at any index, reading one of them is enough.
func (r *Result) log(ctx context.Context, from uint64) iter.Seq2[*item, error] {
	return r.logWith(ctx, from, &itemArena{})
}

// logWith is log with the items of a maker, where one log is enough.
func (r *Result) logWith(ctx context.Context, from uint64, t itemMaker) iter.Seq2[*item, error] {
	parts := r.parts()
	if r.disputed || len(r.Shifts) > 0 || len(r.Doubted) > 0 || len(parts) > maxParts {
		return merged(ctx, r.logs())
	}
	return func(yield func(*item, error) bool) {
		for _, p := range parts {
			if p.to >= from && !r.read(ctx, p, max(p.from, from), t, yield) {
				return
			}
		}
	}
}

// first yields the merged log for the survey, read in another goroutine. If the sums of all logs that reach an index
// show that they hold the same entries, only one of them is read. Items are valid as an itemRing says.
func (r *Result) first(ctx context.Context) iter.Seq2[*item, error] {
	stretches, parts := r.stretches(), r.parts()
	if len(r.Shifts) > 0 || len(r.Doubted) > 0 || len(stretches) == 0 || len(stretches) > maxParts ||
		len(parts) > maxParts {
		return inParallel(merged(ctx, r.logs()))
	}
	ring := &itemRing{}
	read := func(yield func(*item, error) bool) {
		for _, st := range stretches {
			if !st.agreed {
				for it, err := range mergedBetween(ctx, r.logs(), st.from, st.to, &ring.large) {
					if !yield(it, err) || err != nil {
						return
					}
				}
				continue
			}
			for _, p := range parts {
				p.from, p.to = max(p.from, st.from), min(p.to, st.to)
				if p.from <= p.to && !r.read(ctx, p, p.from, ring, yield) {
					return
				}
			}
		}
	}
	return func(yield func(*item, error) bool) {
		for it, err := range inParallel(read) {
			if err == nil {
				it = ring.decoded(it)
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// inParallel reads a log in another goroutine.
func inParallel(log iter.Seq2[*item, error]) iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		p := ahead(log)
		defer p.stop()
		for it, ok := p.next(); ok; it, ok = p.next() {
			if it.fault != nil {
				yield(nil, it.fault)
				return
			}
			if !yield(it, nil) {
				return
			}
		}
	}
}

// stretch is a span of indexes in which all logs that reach there agree, or may not.
type stretch struct {
	from, to uint64
	agreed   bool
}

// stretches takes the sums of all logs together, in index order; nil when one of several has none.
func (r *Result) stretches() []stretch {
	if r.withWAL() == 1 {
		return []stretch{{to: math.MaxUint64, agreed: true}}
	}
	var logs []*evidence.LogSums
	for _, m := range r.Members {
		switch w := &m.Member.WAL; {
		case !w.Present():
		case w.Sums == nil:
			return nil
		default:
			logs = append(logs, w.Sums)
		}
	}
	width := evidence.CommonWidth(logs)
	first, agreed := map[uint64]evidence.BlockSum{}, map[uint64]bool{}
	for _, l := range logs {
		for n, sum := range l.Blocks() {
			known, ok := first[n]
			first[n], agreed[n] = sum, !ok || agreed[n] && sum == known
		}
	}
	var out []stretch
	for _, n := range slices.Sorted(maps.Keys(agreed)) {
		from, to := n<<width, (n+1)<<width-1
		if last := len(out) - 1; last >= 0 && out[last].agreed == agreed[n] {
			out[last].to = to
			continue
		}
		out = append(out, stretch{from, to, agreed[n]})
	}
	return out
}

func (r *Result) withWAL() (n int) {
	for _, m := range r.Members {
		if m.Member.WAL.Present() {
			n++
		}
	}
	return n
}

// itemMaker makes items of entries. How long an item stays valid depends on it.
type itemMaker interface {
	newItem(e dumplog.Entry, holder int) *item
}

// read yields the entries of a part from an index on.
func (r *Result) read(ctx context.Context, p part, from uint64, t itemMaker, yield func(*item, error) bool) bool {
	w := &r.Members[p.member].Member.WAL
	last := from - 1
	for e, err := range w.Log.EntriesFrom(ctx, &w.Summary, from) {
		var d *dumplog.DamageError
		switch {
		case errors.As(err, &d):
		case err != nil:
			yield(nil, err)
			return false
		case e.Overwritten || e.Index <= last:
		case e.Index > p.to:
			return true
		default:
			last = e.Index
			it := t.newItem(e, p.member)
			it.agreed = true
			if !yield(it, nil) {
				return false
			}
		}
	}
	return true
}

// parts gives every index to the first member whose effective log holds it, as merged does, in index order.
func (r *Result) parts() []part {
	var out []part
	for i, m := range r.Members {
		w := &m.Member.WAL
		if !w.Present() {
			continue
		}
		given := slices.Clone(out)
		for _, t := range w.Summary.Terms {
			out = append(out, without(part{i, t.First, t.Last}, given)...)
		}
		slices.SortFunc(out, func(a, b part) int { return cmp.Compare(a.from, b.from) })
		out = joined(out)
	}
	return out
}

// without is what is left of a part outside of others, which are in index order.
func without(p part, others []part) []part {
	var out []part
	for _, o := range others {
		if o.to < p.from || o.from > p.to {
			continue
		}
		if o.from > p.from {
			out = append(out, part{p.member, p.from, o.from - 1})
		}
		p.from = o.to + 1
	}
	if p.from <= p.to {
		out = append(out, p)
	}
	return out
}

// joined makes one part of neighbours of one member.
func joined(parts []part) []part {
	out := parts[:0]
	for _, p := range parts {
		if n := len(out); n > 0 && out[n-1].member == p.member && out[n-1].to+1 == p.from {
			out[n-1].to = p.to
			continue
		}
		out = append(out, p)
	}
	return out
}
