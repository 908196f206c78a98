package dumpdb

import (
	"math/rand/v2"
	"testing"
)

// TestLiveKeys holds the table against a map over many puts and removals; few homes make long runs of neighbours, also
// around the end.
func TestLiveKeys(t *testing.T) {
	for _, homes := range []uint64{1, 7, 1000, 1 << 40} {
		rnd := rand.New(rand.NewPCG(8, homes))
		var l liveKeys
		want := map[keyHash]Rev{}
		for n := range int64(12_000) {
			key := keyHash{-rnd.Uint64N(homes), rnd.Uint64N(400 * (1 + uint64(n)/6_000))}
			rev := Rev{Main: n}
			old, known := want[key]
			if rnd.IntN(3) == 0 {
				if l.remove(key) != known {
					t.Fatalf("removal of %v: known %v", key, !known)
				}
				delete(want, key)
				continue
			}
			if before, ok := l.put(&record{key: key, rev: rev}); ok != known || before.rev != old {
				t.Fatalf("%v was %v %v, want %v %v", key, before.rev, ok, old, known)
			}
			want[key] = rev
		}
		seen := map[Rev]bool{}
		l.all(func(s *lifeState) { seen[s.rev] = true })
		if l.used != len(want) || len(seen) != len(want) {
			t.Errorf("%d keys, %d visited, want %d", l.used, len(seen), len(want))
		}
		for key, rev := range want {
			if got, ok := l.newest(key); !ok || got != rev || !seen[rev] {
				t.Fatalf("%v is %v %v, want %v", key, got, ok, rev)
			}
		}
		if _, ok := l.newest(keyHash{5, 1 << 60}); ok {
			t.Error("a key that was never put")
		}
	}
}
