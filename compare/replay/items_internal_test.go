package replay

import (
	"bytes"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// All tests of the replay would notice an item that is used after it was given back.
func init() { spoilItems = true }

// Memory is used again only for what was given back: the other items stay as they are.
func TestItemPool(t *testing.T) {
	var pool itemPool
	kept := pool.newItem(entryOf(t, 1, 1), 0)
	keptData := bytes.Clone(kept.entry.Data)
	for i := 2; i < 500; i++ {
		e := entryOf(t, uint64(i), i)
		it := pool.newItem(e, 0)
		if it.entry.Index != e.Index || !bytes.Equal(it.entry.Data, e.Data) || it.err != nil || it.req.Put == nil ||
			len(it.holders) != 1 || it.holders[0] != 0 {
			t.Fatalf("entry %d: item %+v", i, it)
		}
		pool.giveBack(it)
	}
	if kept.entry.Index != 1 || !bytes.Equal(kept.entry.Data, keptData) || kept.req.Put == nil ||
		!bytes.Contains(keptData, kept.req.Put.Key) {
		t.Errorf("an item that was not given back became %+v", kept)
	}
}

// An item that was made of memory of its own is not taken back.
func TestItemPoolTakesOnlyItsOwn(t *testing.T) {
	var pool itemPool
	for name, e := range map[string]dumplog.Entry{
		"does not decode": {Index: 7, Term: 1, Data: []byte{0xff}},
		"large":           {Index: 8, Term: 1, Data: bytes.Repeat([]byte{0}, maxReused+1)},
	} {
		it := pool.newItem(e, 0)
		pool.giveBack(it)
		if it.entry.Index != e.Index || !bytes.Equal(it.entry.Data, e.Data) {
			t.Errorf("%s: item %+v", name, it)
		}
	}
}
