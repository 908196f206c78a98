package replay

import (
	"bytes"
	"sync"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// itemArena makes items of entries. Neighbours share chunks for their bytes, unless each has its own. Shared chunks
// suit callers that drop an item soon.
type itemArena struct {
	each bool
	data []byte
	dec  dumplog.Decoder
}

// chunkSize is the size of the chunks; entries that take a good part of one are kept apart.
const chunkSize = 64 << 10

func (t *itemArena) newItem(e dumplog.Entry, holder int) *item {
	it := &item{entry: e}
	it.holders = append(it.first[:0], holder)
	it.entry.Data = t.clone(e.Data)
	it.req, it.err = t.dec.DecodeNew(&it.entry)
	if it.req.Kind.ChangesAuth() && !t.each { // these are remembered
		it.entry.Data = bytes.Clone(e.Data)
		it.req, it.err = it.entry.Decode()
	}
	return it
}

func (t *itemArena) clone(b []byte) []byte {
	if t.each || len(b) > maxReused {
		return bytes.Clone(b)
	}
	if len(t.data)+len(b) > cap(t.data) {
		t.data = make([]byte, 0, chunkSize)
	}
	n := len(t.data)
	t.data = append(t.data, b...)
	return t.data[n:len(t.data):len(t.data)]
}

// slot is memory for an item with a request about keys.
type slot struct {
	item item
	data []byte
	dec  dumplog.Decoder
}

// hold makes the slot's item of an entry, not decoded yet.
func (s *slot) hold(e dumplog.Entry, holder int) *item {
	s.data = append(s.data[:0], e.Data...)
	it := &s.item
	*it = item{entry: e}
	it.entry.Data = s.data
	it.holders = append(it.first[:0], holder)
	return it
}

// decode decodes the slot's item. It is false if that fails, or its request is one that is kept.
func (s *slot) decode() bool {
	it := &s.item
	it.req, it.err = s.dec.Decode(&it.entry)
	return it.err == nil && isPassing(it.req.Kind)
}

// isPassing reports whether survey and walker keep nothing of such requests, where they take effect as expected.
func isPassing(k dumplog.Kind) bool {
	switch k {
	case dumplog.KindPut, dumplog.KindTxn, dumplog.KindDeleteRange, dumplog.KindRange:
		return true
	}
	return false
}

// itemRing makes items of entries for a prefetch, which are decoded after that, and reuses their memory: an item with a
// request about keys is valid until maxShift more were taken from the prefetch. The others stay valid. The zero value
// is ready.
type itemRing struct {
	slots [ringSize]slot
	n     int
	// large makes the items of large entries, before the prefetch, kept those that stay valid, after it.
	large, kept itemArena
}

// ringSize is one more than the survey remembers to find a request that the log holds twice, and all that a prefetch
// may have made meanwhile.
const ringSize = maxShift + 1 + prefetched

func (t *itemRing) newItem(e dumplog.Entry, holder int) *item {
	if len(e.Data) > maxReused {
		return t.large.newItem(e, holder)
	}
	s := &t.slots[t.n%ringSize]
	t.n++
	it := s.hold(e, holder)
	it.slot = s
	return it
}

// decoded returns an item that was taken from the prefetch with its request.
func (t *itemRing) decoded(it *item) *item {
	s := it.slot
	if s == nil {
		return it
	}
	if it.slot = nil; s.decode() {
		return it
	}
	kept := t.kept.newItem(it.entry, it.holders[0])
	kept.agreed = it.agreed
	return kept
}

// maxReused bounds the entries, in bytes, whose memory is used again.
const maxReused = chunkSize / 8

// itemPool makes items of entries, and uses the memory of those again that are given back. The others stay valid. The
// zero value is ready.
type itemPool struct {
	free sync.Pool
	own  itemArena
}

func (t *itemPool) newItem(e dumplog.Entry, holder int) *item {
	if len(e.Data) > maxReused {
		return t.own.newItem(e, holder)
	}
	s, _ := t.free.Get().(*slot)
	if s == nil {
		s = new(slot)
	}
	it := s.hold(e, holder)
	if !s.decode() {
		t.free.Put(s)
		return t.own.newItem(e, holder)
	}
	it.slot = s
	return it
}

// giveBack takes an item back that is not used any more.
func (t *itemPool) giveBack(it *item) {
	s := it.slot
	if s == nil {
		return
	}
	if spoilItems {
		*it = item{entry: dumplog.Entry{Index: it.entry.Index}}
		for i := range s.data {
			s.data[i] = 0xdb
		}
	}
	it.slot = nil
	t.free.Put(s)
}

// spoilItems is set by tests: an item that is used after it was given back is then wrong for certain.
var spoilItems bool
