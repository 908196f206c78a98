//go:build unix

package apply

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/internal/spill"
)

// TestKeysInArea: a key space of which a part does not fit is the same as one that does: through puts, deletes, starts
// of values, leases, compaction of its names, order and copies, and whatever the collector does meanwhile.
func TestKeysInArea(t *testing.T) {
	area := spill.New(evidencetest.DiskDir(t))
	room := NewRoom(3<<20, area)
	keys, want := room.NewKeys(5000), map[string]Key{}
	rnd := rand.New(rand.NewPCG(1, 2))
	long := strings.Repeat("long", 20)
	for n := range 200_000 {
		name := fmt.Sprint("key", long, rnd.IntN(20_000))
		k := Key{Name: name, Mod: int64(n), Unsure: rnd.IntN(9) == 0}
		if rnd.IntN(50) == 0 {
			k.Lease = int64(1 + rnd.IntN(2))
		}
		if rnd.IntN(2) == 0 {
			k.Head = fmt.Sprint("head", n)
		}
		switch {
		case n%3 == 0:
			keys.Remove(name)
			delete(want, name)
		default:
			keys.Put(k)
			want[name] = k
		}
		if n%20_000 == 0 {
			runtime.GC()
			garbage := make([][]byte, 1000)
			for i := range garbage {
				garbage[i] = []byte(strings.Repeat("garbage", 100))
			}
			runtime.KeepAlive(garbage)
		}
	}
	if room.Exceeded() || area.Size() == 0 {
		t.Fatalf("%d bytes are left, %d in the area", room.left.Load(), area.Size())
	}
	sameKeys(t, keys, want)
	copied := keys.Clone()
	for name := range want {
		keys.Remove(name)
	}
	for n := range 10_000 {
		keys.Put(Key{Name: fmt.Sprint("other", n), Head: "other"})
	}
	runtime.GC()
	sameKeys(t, copied, want)
	keys.Release()
	if room.left.Load() != 3<<20 {
		t.Errorf("%d bytes are still counted", 3<<20-room.left.Load())
	}
}

// TestAreaIsUsedAgain: key spaces that come and go do not make the area larger.
func TestAreaIsUsedAgain(t *testing.T) {
	area := spill.New(evidencetest.DiskDir(t))
	room := NewRoom(1<<20, area)
	fill := func() {
		keys := room.NewKeys(50_000)
		for n := range 50_000 {
			keys.Put(Key{Name: fmt.Sprint(n)})
		}
		if keys.Len() != 50_000 || room.Exceeded() {
			t.Fatalf("%d keys, %d bytes are left", keys.Len(), room.left.Load())
		}
		keys.Release()
	}
	fill()
	first := area.Size()
	for range 20 {
		fill()
	}
	if first == 0 || area.Size() > first+64<<20 {
		t.Errorf("%d bytes, %d after the first", area.Size(), first)
	}
}
