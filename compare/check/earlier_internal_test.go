package check

import (
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// TestRecordWindow: what is asked for one after the other is read together, and the answers are those of single reads,
// in whatever order.
func TestRecordWindow(t *testing.T) {
	var kept []record
	for main := int64(2); main < 200; main++ {
		if main%10 != 0 { // some revisions wrote no record that is left
			kept = append(kept, record{main, 0, fmt.Sprint("k", main), main%7 == 0}, record{main, 3, "b", false})
		}
	}
	m := withDB(member("n1"), 20)
	m.DB.Handle = keyBucket(t, kept...)
	for name, c := range map[string]struct {
		step, begin, width int64
	}{
		"one after the other": {1, 2, maxWindow}, "each third": {3, 2, maxWindow}, "backwards": {-1, 199, 1},
		"far apart": {18, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, widest := &recordWindow{m: m}, int64(0)
			for main := c.begin; main >= 2 && main < 200; main += c.step {
				for _, sub := range []int64{0, 1, 3} {
					rev := dumpdb.Rev{Main: main, Sub: sub}
					got, want := w.at(t.Context(), rev), (&recordWindow{m: m}).at(t.Context(), rev)
					if (want == nil) != (sub == 1 || main%10 == 0) {
						t.Fatalf("%s: %v is wrong by itself", rev, want)
					}
					if fmt.Sprint(contentsOf(got)) != fmt.Sprint(contentsOf(want)) {
						t.Errorf("%s: %v, want %v", rev, got, want)
					}
				}
				widest = max(widest, w.width)
			}
			if widest != c.width {
				t.Errorf("%d revisions were read together, want %d", widest, c.width)
			}
		})
	}
}

func contentsOf(c *diff.RecordCell) any {
	if c == nil {
		return nil
	}
	return *c
}
