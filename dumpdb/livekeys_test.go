package dumpdb

import (
	"math/rand/v2"
	"testing"
)

// TestLiveKeys compares the table with a map over many puts and removals. Few homes make long runs of neighbors, also
// around the end.
func TestLiveKeys(t *testing.T) {
	for _, homes := range []uint64{1, 7, 1000, 1 << 40} {
		rnd := rand.New(rand.NewPCG(8, homes))
		var l liveKeys
		want := map[keyHash]int64{}
		for n := range int64(20_000) {
			key := keyHash{-rnd.Uint64N(homes), rnd.Uint64N(400 * (1 + uint64(n)/6_000))}
			old, known := want[key]
			if rnd.IntN(3) == 0 {
				if before, ok := l.remove(key); ok != known || before.main != old {
					t.Fatalf("removal of %v: was %v %v, want %v %v", key, before.main, ok, old, known)
				}
				delete(want, key)
				continue
			}
			if before, ok := l.put(key, liveKey{main: n + 1}); ok != known || before.main != old {
				t.Fatalf("%v was %v %v, want %v %v", key, before.main, ok, old, known)
			}
			want[key] = n + 1
		}
		seen := map[int64]bool{}
		l.all(func(k *liveKey) { seen[k.main] = true })
		if l.used != len(want) || len(seen) != len(want) {
			t.Errorf("%d keys, %d visited, want %d", l.used, len(seen), len(want))
		}
		for key, rev := range want {
			if got := l.get(key); got == nil || got.main != rev || !seen[rev] {
				t.Fatalf("%v is %v, want %v", key, got, rev)
			}
		}
		if l.get(keyHash{5, 1 << 60}) != nil {
			t.Error("a key that was never put")
		}
	}
}

// TestLiveKeyPlace: the place of a record on an overflow page survives, with the mark of a missing lease.
func TestLiveKeyPlace(t *testing.T) {
	want := Place{Page: 7, Offset: 9*4096 + 33}
	k := liveKeyOf(&record{place: want}, 4096)
	k.where |= leaseMissing
	if got := k.place(4096); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
