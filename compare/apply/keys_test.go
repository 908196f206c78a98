package apply

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
