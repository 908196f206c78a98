package replay

import "testing"

// TestWatchKeepsTheNewest: of more entries than there is room for, the newest are kept and all are counted.
func TestWatchKeepsTheNewest(t *testing.T) {
	w := &walker{r: &Result{}, o: Options{MaxEvents: 3}}
	for i := range uint64(20) {
		w.watch(&Event{Index: i})
		if n := len(w.r.Watched); n > 6 || n < min(int(i)+1, 3) || w.r.Watched[n-1].Index != i {
			t.Fatalf("after entry %d: %d are kept", i, n)
		}
	}
	for i, e := range w.r.Watched {
		if e.Index != uint64(20-len(w.r.Watched)+i) {
			t.Errorf("%d is entry %d", i, e.Index)
		}
	}
	if w.r.WatchedCount != 20 {
		t.Errorf("%d", w.r.WatchedCount)
	}
}
