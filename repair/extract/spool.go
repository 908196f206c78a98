package extract

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// ref is a record of bucket key by its place. raw is the bucket key and value of a record outside the tree.
type ref struct {
	key       []byte
	rev       dumpdb.Rev
	tombstone bool
	// match says whether the Kubernetes conditions are met.
	match  bool
	origin dumpdb.Origin
	place  dumpdb.Place
	rawKey []byte
	raw    []byte
}

func (r *ref) size() int { return len(r.key) + len(r.raw) + len(r.rawKey) + 160 }

// byKey orders records by key, oldest first; byRev is the order of the bucket.
func byKey(a, b *ref) int {
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c
	}
	return byRev(a, b)
}

func byRev(a, b *ref) int {
	if c := cmp.Compare(a.rev.Main, b.rev.Main); c != 0 {
		return c
	}
	return cmp.Compare(a.rev.Sub, b.rev.Sub)
}

// spool sorts any number of refs in bounded memory: it writes sorted runs to files of a scratch folder and merges them
// when read.
type spool struct {
	dir   string
	order func(a, b *ref) int
	// reduce drops unneeded refs from a sorted portion and keeps the order; nil keeps all.
	reduce func([]*ref) []*ref
	budget int

	refs []*ref
	size int
	runs []string
}

// spoolBudget is the memory of a spool in bytes.
const spoolBudget = 48 << 20

func (x *reader) newSpool(order func(a, b *ref) int, reduce func([]*ref) []*ref) *spool {
	return &spool{dir: x.dir, order: order, reduce: reduce, budget: x.o.Memory}
}

func (s *spool) add(r *ref) error {
	s.refs = append(s.refs, r)
	s.size += r.size()
	if s.size < s.budget {
		return nil
	}
	s.sort()
	if s.size < s.budget/2 {
		return nil
	}
	return s.spill()
}

func (s *spool) sort() {
	slices.SortFunc(s.refs, s.order)
	if s.reduce == nil {
		return
	}
	s.refs = s.reduce(s.refs)
	s.size = 0
	for _, r := range s.refs {
		s.size += r.size()
	}
}

// spill writes the sorted portion as a run.
func (s *spool) spill() error {
	path := filepath.Join(s.dir, fmt.Sprintf("%p-%d.run", s, len(s.runs)))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var buf []byte
	for _, r := range s.refs {
		buf = r.append(buf[:0])
		if _, err := w.Write(buf); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return err
	}
	s.runs = append(s.runs, path)
	s.refs, s.size = nil, 0
	return nil
}

var origins = []dumpdb.Origin{"", dumpdb.OriginLive, dumpdb.OriginOlder, dumpdb.OriginFree, dumpdb.OriginUnreachable}

func (r *ref) append(b []byte) []byte {
	flags := uint64(slices.Index(origins, r.origin)) << 2
	if r.tombstone {
		flags |= 1
	}
	if r.match {
		flags |= 2
	}
	for _, n := range []uint64{flags, uint64(r.rev.Main), uint64(r.rev.Sub), r.place.Page, uint64(r.place.Offset)} {
		b = binary.AppendUvarint(b, n)
	}
	for _, p := range [][]byte{r.key, r.rawKey, r.raw} {
		b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
	}
	return b
}

// readRef returns io.EOF only at the end of a run. A record that is cut short is another error.
func readRef(in *bufio.Reader) (*ref, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	r, err := readFields(in)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return r, err
}

func readFields(in *bufio.Reader) (*ref, error) {
	var n [5]uint64
	for i := range n {
		v, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		n[i] = v
	}
	r := &ref{tombstone: n[0]&1 != 0, match: n[0]&2 != 0, rev: dumpdb.Rev{Main: int64(n[1]), Sub: int64(n[2])},
		place: dumpdb.Place{Page: n[3], Offset: int64(n[4])}}
	if o := n[0] >> 2; o < uint64(len(origins)) {
		r.origin = origins[o]
	}
	for _, p := range []*[]byte{&r.key, &r.rawKey, &r.raw} {
		l, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		*p = make([]byte, l)
		if _, err := io.ReadFull(in, *p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// run is one sorted sequence in a merge.
type run struct {
	cur  *ref
	next func() (*ref, error)
}

type runs struct {
	list  []*run
	order func(a, b *ref) int
}

// Len, Less, Swap, Push and Pop make it a heap.
func (h *runs) Len() int { return len(h.list) }

// Less orders the runs by their next records.
func (h *runs) Less(i, j int) bool { return h.order(h.list[i].cur, h.list[j].cur) < 0 }

// Swap implements heap.Interface.
func (h *runs) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }

// Push implements heap.Interface.
func (h *runs) Push(x any) { h.list = append(h.list, x.(*run)) }

// Pop implements heap.Interface.
func (h *runs) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}

// sorted yields all refs in order. The spool cannot be used after it.
func (s *spool) sorted() iter.Seq2[*ref, error] {
	return func(yield func(*ref, error) bool) {
		s.sort()
		h := &runs{order: s.order}
		i := 0
		readers := []func() (*ref, error){func() (*ref, error) {
			if i == len(s.refs) {
				return nil, io.EOF
			}
			i++
			return s.refs[i-1], nil
		}}
		for _, path := range s.runs {
			f, err := os.Open(path)
			if err != nil {
				yield(nil, err)
				return
			}
			defer func() { _ = f.Close() }()
			in := bufio.NewReaderSize(f, 256<<10)
			readers = append(readers, func() (*ref, error) { return readRef(in) })
		}
		for _, next := range readers {
			r := &run{next: next}
			if err := h.advance(r); err != nil {
				yield(nil, err)
				return
			}
		}
		for h.Len() > 0 {
			r := heap.Pop(h).(*run)
			if !yield(r.cur, nil) {
				return
			}
			if err := h.advance(r); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// advance moves a run to its next ref and puts it back, unless it is at its end.
func (h *runs) advance(r *run) error {
	cur, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	r.cur = cur
	heap.Push(h, r)
	return nil
}
