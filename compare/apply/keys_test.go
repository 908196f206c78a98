package apply

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestKeysInOrder: whether the order of the keys is asked for from the start, at some time, or only at the end, the
// same keys are there, also in a copy that goes its own way.
func TestKeysInOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		early, late := NewKeys(), NewKeys()
		early.All(func(*Key) bool { return true })
		asked := rnd.IntN(200)
		want := map[string]Key{}
		for n := range 200 {
			name := fmt.Sprint("key", rnd.IntN(30))
			k := Key{Name: name, Mod: int64(n), Lease: int64(rnd.IntN(3)), Unsure: rnd.IntN(4) == 0}
			for _, keys := range []*Keys{early, late} {
				if n%3 == 0 {
					keys.Remove(name)
				} else {
					keys.Put(k)
				}
			}
			if n%3 == 0 {
				delete(want, name)
			} else {
				want[name] = k
			}
			if n == asked {
				late.All(func(*Key) bool { return true })
			}
		}
		copied := late.Clone()
		for name := range want {
			late.Remove(name)
		}
		for _, keys := range []*Keys{early, copied} {
			sameKeys(t, keys, want)
		}
		if late.Len() != 0 || late.Unsure() != 0 || late.CountOfLease(1) != 0 {
			t.Fatalf("round %d: %d keys are left, %d unsure", round, late.Len(), late.Unsure())
		}
	}
}

// sameKeys compares keys with those of a map, in order, by range and by lease.
func sameKeys(t *testing.T, keys *Keys, want map[string]Key) {
	t.Helper()
	var names, inRange []string
	unsure, leased := 0, map[int64][]string{}
	for name, k := range want {
		if got := keys.Get(name); got == nil || *got != k {
			t.Fatalf("%s is %+v, want %+v", name, got, k)
		}
		names = append(names, name)
		if InRange(name, []byte("key1"), []byte("key2")) {
			inRange = append(inRange, name)
		}
		if k.Unsure {
			unsure++
		}
		if k.Lease != 0 {
			leased[k.Lease] = append(leased[k.Lease], name)
		}
	}
	slices.Sort(names)
	slices.Sort(inRange)
	var all, some []string
	keys.All(func(k *Key) bool { all = append(all, k.Name); return true })
	keys.Range([]byte("key1"), []byte("key2"), func(k *Key) bool { some = append(some, k.Name); return true })
	if !slices.Equal(all, names) || !slices.Equal(some, inRange) || keys.Len() != len(want) || keys.Unsure() != unsure {
		t.Fatalf("keys %v and %v, want %v and %v; %d unsure, want %d", all, some, names, inRange, keys.Unsure(), unsure)
	}
	for id := int64(1); id < 3; id++ {
		slices.Sort(leased[id])
		if got := keys.OfLease(id); !slices.Equal(got, leased[id]) {
			t.Fatalf("lease %d has %v, want %v", id, got, leased[id])
		}
	}
	stopped := 0
	keys.Range(nil, []byte{0}, func(*Key) bool { stopped++; return false })
	if stopped > 1 {
		t.Fatal("a visit that ended continues")
	}
}

// TestKeysOfChurn: names that are no longer in use go, in a key space where most keys live for a short time. Those that
// stay are not changed by it, in order, by lease and in a copy.
func TestKeysOfChurn(t *testing.T) {
	keys, want := NewKeys(), map[string]Key{}
	put := func(name string, n int, lease int64) {
		k := Key{Name: name, Mod: int64(n), Version: 1, Lease: lease}
		keys.Put(k)
		want[name] = k
	}
	short := strings.Repeat("short-lived", 20)
	for n := range 40_000 {
		if n%100 == 0 {
			put(fmt.Sprint("key", n), n, int64(n/100%3))
		}
		if n == 20_000 {
			keys.All(func(*Key) bool { return true })
		}
		name := fmt.Sprint(short, n)
		keys.Put(Key{Name: name, Lease: 2})
		keys.Remove(name)
	}
	if keys.names.taken > 2*fewNames {
		t.Errorf("%d bytes of names were taken, %d are in use", keys.names.taken, keys.names.live)
	}
	copied := keys.Clone()
	sameKeys(t, keys, want)
	for n := range 40_000 {
		keys.Put(Key{Name: fmt.Sprint(short, n)})
	}
	sameKeys(t, copied, want)
	if keys.Len() != 40_000+len(want) || keys.names.live < 40_000*len(short) {
		t.Errorf("%d keys, %d bytes of names", keys.Len(), keys.names.live)
	}
}

// TestKeysFollowedFast: the collector follows few objects for many keys.
func TestKeysFollowedFast(t *testing.T) {
	const n = 100_000
	keys := NewKeysFor(n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		keys.Put(Key{Name: fmt.Sprint("/registry/pods/", i), Mod: int64(i)})
	}
	for i := range n {
		keys.Put(Key{Name: fmt.Sprint("/registry/pods/", i), Mod: int64(n + i)})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if live := int64(after.HeapObjects) - int64(before.HeapObjects); live > n/10 {
		t.Errorf("%d objects for %d keys", live, n)
	}
	runtime.KeepAlive(keys)
}
