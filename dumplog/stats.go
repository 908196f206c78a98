package dumplog

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
)

// Count is a number of entries and the bytes of their payloads.
type Count struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

func (c *Count) add(n int) {
	c.Entries++
	c.Bytes += int64(n)
}

// sizeClasses is the number of classes of Stats.Sizes. Class i counts payloads of less than 2^i bytes.
const sizeClasses = 33

// maxPrefixes bounds the prefixes, users and terms that Stats counts separately; the others are counted together.
const maxPrefixes = 10000

// OtherPrefix is the prefix under which Stats counts the keys after the first 10000 prefixes.
const OtherPrefix = "(other)"

// Stats counts the entries of a log. The zero value is ready; set Depth before the first Add.
type Stats struct {
	Total Count
	// Sizes counts payloads by size: class i has less than 2^i and at least 2^(i-1) bytes.
	Sizes [sizeClasses]int64
	Kinds map[Kind]*Count
	Terms map[uint64]*Count
	// OtherTerms counts the entries of the terms after the first 10000 terms.
	OtherTerms Count
	Proposers  map[uint16]*Count
	Users      map[string]*Count
	// Prefixes counts the keys of puts and deletes, those in txns too, by their first Depth path elements.
	Prefixes map[string]*Count
	// Depth is the number of path elements of a prefix; 0 means 2, as in /registry/pods.
	Depth int
	// Largest is the size of the largest payload in bytes, and its position.
	Largest      int64
	LargestIndex uint64
	LargestPos   Pos
	// Undecoded counts the entries that do not decode as a request.
	Undecoded int64

	kind     *Count
	lastKind Kind
	term     *Count
	lastTerm uint64
}

// Add counts one entry.
func (s *Stats) Add(e *Entry, r *Request) {
	n := len(e.Data)
	s.Total.add(n)
	s.Sizes[bitLen(n)]++
	if int64(n) > s.Largest {
		s.Largest, s.LargestIndex, s.LargestPos = int64(n), e.Index, e.Pos
	}
	if s.kind == nil || s.lastKind != r.Kind {
		s.kind, s.lastKind = counter(&s.Kinds, r.Kind), r.Kind
	}
	s.kind.add(n)
	if s.term == nil || s.lastTerm != e.Term {
		s.term, s.lastTerm = s.ofTerm(e.Term), e.Term
	}
	s.term.add(n)
	if r.Kind == KindUnknown {
		s.Undecoded++
	}
	if id := r.ProposerID(); id != 0 {
		counter(&s.Proposers, id.ProposerPrefix()).add(n)
	}
	if u := r.Header.Username; u != "" {
		s.named(&s.Users, u).add(n)
	}
	s.prefixes(r)
}

func bitLen(n int) int {
	l := 0
	for ; n > 0 && l < sizeClasses-1; n >>= 1 {
		l++
	}
	return l
}

// prefixes counts the keys that a request writes. It handles a plain put first, since nearly every entry is one.
func (s *Stats) prefixes(r *Request) {
	switch {
	case r.Put != nil:
		s.prefix(r.Put.Key).add(len(r.Put.Key) + len(r.Put.Value))
	case r.DeleteRange != nil:
		s.prefix(r.DeleteRange.Key).add(len(r.DeleteRange.Key))
	case r.Txn != nil:
		r.EachOp(func(op RequestOp) {
			switch {
			case op.Put != nil:
				s.prefix(op.Put.Key).add(len(op.Put.Key) + len(op.Put.Value))
			case op.DeleteRange != nil:
				s.prefix(op.DeleteRange.Key).add(len(op.DeleteRange.Key))
			}
		})
	}
}

func (s *Stats) prefix(key []byte) *Count {
	p := keyPrefix(key, s.Depth)
	if c := s.Prefixes[string(p)]; c != nil {
		return c
	}
	return s.named(&s.Prefixes, string(p))
}

// keyPrefix returns the first depth path elements of a key with the slash after them. For a key with fewer elements it
// returns the key's folder.
func keyPrefix(key []byte, depth int) []byte {
	if depth <= 0 {
		depth = 2
	}
	end := 0
	for i := 0; i < len(key); {
		j := bytes.IndexByte(key[i:], '/')
		if j < 0 {
			break
		}
		i += j + 1
		if i > 1 { // a leading slash opens the first element
			depth--
		}
		if end = i; depth == 0 {
			break
		}
	}
	return key[:end]
}

func (s *Stats) named(m *map[string]*Count, name string) *Count {
	if _, ok := (*m)[name]; !ok && len(*m) >= maxPrefixes {
		name = OtherPrefix
	}
	return counter(m, name)
}

func (s *Stats) ofTerm(term uint64) *Count {
	if _, ok := s.Terms[term]; !ok && len(s.Terms) >= maxPrefixes {
		return &s.OtherTerms
	}
	return counter(&s.Terms, term)
}

func counter[K comparable](m *map[K]*Count, k K) *Count {
	c := (*m)[k]
	if c == nil {
		if *m == nil {
			*m = map[K]*Count{}
		}
		c = new(Count)
		(*m)[k] = c
	}
	return c
}

// Merge adds the counts of another part of the log, within the same bounds.
func (s *Stats) Merge(o *Stats) {
	s.Total.Entries += o.Total.Entries
	s.Total.Bytes += o.Total.Bytes
	s.Undecoded += o.Undecoded
	for i, n := range o.Sizes {
		s.Sizes[i] += n
	}
	if o.Largest > s.Largest {
		s.Largest, s.LargestIndex, s.LargestPos = o.Largest, o.LargestIndex, o.LargestPos
	}
	s.OtherTerms.merge(&o.OtherTerms)
	merge(o.Kinds, func(k Kind) *Count { return counter(&s.Kinds, k) })
	merge(o.Terms, s.ofTerm)
	merge(o.Proposers, func(p uint16) *Count { return counter(&s.Proposers, p) })
	merge(o.Users, func(u string) *Count { return s.named(&s.Users, u) })
	merge(o.Prefixes, func(p string) *Count { return s.named(&s.Prefixes, p) })
}

// merge adds the counts of a part in the order of their names, so that the log alone decides which of them are counted
// separately.
func merge[K cmp.Ordered](from map[K]*Count, to func(K) *Count) {
	for _, k := range slices.Sorted(maps.Keys(from)) {
		to(k).merge(from[k])
	}
}

func (c *Count) merge(o *Count) {
	c.Entries += o.Entries
	c.Bytes += o.Bytes
}

// Stats counts the entries that f selects, the segments in parallel on all cores, and checks every CRC. f may be nil. A
// filter by Overwritten reads the log a second time, since Overwritten is known only after a first pass.
func (l *Log) Stats(ctx context.Context, f *Filter) (*Stats, *Summary, error) {
	if f == nil {
		f = &Filter{}
	}
	if f.Overwritten != nil {
		return l.statsInOrder(ctx, f)
	}
	parts := make([]*Stats, l.Segments())
	sum, err := l.ScanWith(ctx, func(i int) func(*Entry) {
		var d Decoder
		part := new(Stats) // one per segment, so that two cores do not share a cache line
		parts[i] = part
		return func(e *Entry) {
			if r, _ := d.Decode(e); f.Match(e, r) {
				part.Add(e, r)
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	all := &Stats{}
	for _, part := range parts {
		all.Merge(part)
	}
	return all, sum, nil
}

func (l *Log) statsInOrder(ctx context.Context, f *Filter) (*Stats, *Summary, error) {
	sum, err := l.Scan(ctx)
	if err != nil {
		return nil, nil, err
	}
	all := &Stats{}
	var d Decoder
	for e, err := range l.Entries(ctx, sum) {
		if err != nil {
			continue // damage is in the summary
		}
		if r, _ := d.Decode(&e); f.Match(&e, r) {
			all.Add(&e, r)
		}
	}
	return all, sum, ctx.Err()
}
