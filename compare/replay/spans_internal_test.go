package replay

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
)

// TestPartsCoverASpan: parts cover a span once and in order, whatever their size, where many revisions have no record
// and others have many, and none has more records than it may.
func TestPartsCoverASpan(t *testing.T) {
	// count returns how many records revision rev has.
	count := func(rev int64) int {
		switch {
		case rev == 700:
			return 5000
		case rev < 500 || rev >= 1000 && rev%100 == 0:
			return 1
		case rev < 1000:
			return 7
		}
		return 0
	}
	for _, down := range []bool{false, true} {
		for _, size := range []int64{1, 10, 300, 1 << 40} {
			for _, most := range []int{1, 50, partRecords} {
				name := fmt.Sprintf("down %v, size %d, most %d", down, size, most)
				p := newParts(func(part span, most int, _ int) (int, int) {
					n := 0
					for rev := part.from; rev < part.end && n <= most; rev++ {
						n += count(rev)
					}
					return n, n
				})
				p.down, p.size, p.most = down, size, most
				var got []span
				for s, n := range p.of(span{2, 3000}) {
					if got = append(got, s); n > most && s.len() > 1 {
						t.Errorf("%s: %d records in part %v", name, n, s)
					}
				}
				if down {
					slices.Reverse(got)
				}
				at := int64(2)
				for _, s := range got {
					if s.from != at || s.len() < 1 {
						t.Fatalf("%s: part %v follows %d", name, s, at)
					}
					at = s.end
				}
				if at != 3000 {
					t.Errorf("%s: the parts end with %d", name, at)
				}
			}
		}
	}
}

// TestPartsOfHugeSpan: a span that is almost empty takes few parts, and an empty one none.
func TestPartsOfHugeSpan(t *testing.T) {
	var reads atomic.Int64
	p := newParts(func(span, int, bool) (bool, int) { reads.Add(1); return true, 0 })
	for range p.of(span{0, math.MaxInt64}) {
	}
	if n := reads.Load(); n > 100 {
		t.Errorf("%d parts", n)
	}
	reads.Store(0)
	for _, s := range []span{{5, 5}, {9, 3}} {
		for range p.of(s) {
		}
	}
	if n := reads.Load(); n != 0 {
		t.Errorf("%d parts of nothing", n)
	}
}

// TestPartsEndEarly: when the reader has enough, no part is being read any more.
func TestPartsEndEarly(t *testing.T) {
	var running atomic.Int64
	p := newParts(func(part span, _ int, _ bool) (bool, int) {
		running.Add(1)
		defer running.Add(-1)
		return true, int(part.len())
	})
	p.size = 10
	n := 0
	for range p.of(span{0, 1000}) {
		if n++; n == 3 {
			break
		}
	}
	if r := running.Load(); r != 0 || n != 3 {
		t.Errorf("%d parts are read after the third of %d", r, n)
	}
}

// TestWindowReadsInParts: the records that a window asks for are the same, read in parts of any size or in order.
func TestWindowReadsInParts(t *testing.T) {
	compared := 0
	for name, m := range soundDBs(t) {
		var some string
		whole := span{0, m.CurrentRevision() + 1}
		for r := range rowsBetween(m.DB.Handle, m.DB.KV.BumpMarker, whole, nil) {
			if some = r.key; r.rev.Main > whole.end/2 {
				break
			}
		}
		w := newWindow(put(some, "1"))
		w.s = &logView{m: m}
		want := slices.Collect(w.rows(whole))
		for _, size := range []int64{1, 7, whole.end} {
			p := w.parts()
			p.size, p.most = size, 20
			var got []row
			for _, rows := range p.of(whole) {
				got = append(got, rows...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, parts of %d: %d records, want %d", name, size, len(got), len(want))
			}
		}
		compared += len(want)
	}
	if compared < 1000 {
		t.Errorf("only %d records were compared", compared)
	}
}
