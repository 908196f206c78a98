package apply

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestRoomCounts: what a key space counts is about what it takes, and a key space that is released takes nothing.
func TestRoomCounts(t *testing.T) {
	const n = 40_000
	for name, fill := range map[string]func(k *Keys){
		"keys": func(k *Keys) {
			for i := range n {
				k.Put(Key{Name: fmt.Sprintf("/registry/pods/default/pod-%d", i)})
			}
		},
		"leased keys": func(k *Keys) {
			for i := range n {
				k.Put(Key{Name: fmt.Sprintf("/registry/events/default/event-%d", i), Lease: int64(1 + i%100)})
			}
		},
		"starts of values": func(k *Keys) {
			for i := range n {
				name := fmt.Sprintf("/registry/pods/default/pod-%d", i)
				k.Write([]Write{{Key: name, Value: []byte(strings.Repeat("x", maxHead))}}, Key{Entry: 1})
			}
		},
		"order": func(k *Keys) {
			for i := range n {
				k.Put(Key{Name: fmt.Sprintf("/registry/pods/default/pod-%d", i)})
			}
			k.All(func(*Key) bool { return false })
		},
		"removed and put again": func(k *Keys) {
			for i := range 10 * n {
				k.Put(Key{Name: fmt.Sprintf("/registry/pods/default/pod-%d", i)})
				k.Remove(fmt.Sprintf("/registry/pods/default/pod-%d", i-n))
			}
		},
	} {
		for _, room := range []*Room{NewRoom(1<<40, nil), nil} {
			before := live()
			k := room.NewKeys(n / 2)
			fill(k)
			took := live() - before
			if room == nil {
				if k.Release(); k.taken != 0 {
					t.Errorf("%s: without a room %d bytes are counted", name, k.taken)
				}
				continue
			}
			counted := 1<<40 - room.left.Load()
			if counted < took*2/3 || counted > took*3/2 {
				t.Errorf("%s: counted %d KiB, took %d", name, counted>>10, took>>10)
			}
			if k.Release(); room.left.Load() != 1<<40 {
				t.Errorf("%s: %d bytes are still counted", name, 1<<40-room.left.Load())
			}
			runtime.KeepAlive(k)
		}
	}
}

// TestRoomIsExceeded: key spaces share a room, and one that is too large is not made in advance.
func TestRoomIsExceeded(t *testing.T) {
	room := NewRoom(1<<20, nil)
	a, b := room.NewKeys(0), room.NewKeys(0)
	for i := range 3000 {
		a.Put(Key{Name: fmt.Sprint(i)})
	}
	if room.Exceeded() {
		t.Fatal("3,000 keys exceed 1 MiB")
	}
	for i := range 9000 {
		b.Put(Key{Name: fmt.Sprint(i)})
	}
	if !room.Exceeded() {
		t.Fatal("12,000 keys do not exceed 1 MiB")
	}
	if b.Release(); room.Exceeded() {
		t.Error("exceeded by a key space that is released")
	}
	before := live()
	k := room.NewKeys(100_000_000)
	if took := live() - before; !room.Exceeded() || took > 1<<20 {
		t.Errorf("exceeded %v, took %d bytes", room.Exceeded(), took)
	}
	runtime.KeepAlive(k)
}

// live is what the heap holds.
func live() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
