package evidence

import (
	"maps"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestLogSumsStayFew: the number of blocks does not grow with the log, and sums are the same however the log was taken
// apart.
func TestLogSumsStayFew(t *testing.T) {
	const entries = 3 * maxBlocks << firstWidth
	whole, joined := NewLogSums(), NewLogSums()
	var part *LogSums
	for i := range uint64(entries) {
		if i%(entries/7) == 0 {
			if part != nil {
				joined.join(part)
			}
			part = NewLogSums()
		}
		e := dumplog.Entry{Term: 1, Index: 1 + i}
		whole.Note(&e)
		part.Note(&e)
	}
	joined.join(part)
	if CommonWidth([]*LogSums{whole, joined}); len(whole.blocks) > maxBlocks || len(whole.blocks) < maxBlocks/4 {
		t.Errorf("%d blocks", len(whole.blocks))
	}
	if !maps.Equal(whole.Blocks(), joined.Blocks()) {
		t.Error("the sums depend on where the log is taken apart")
	}
	var n uint64
	for _, b := range whole.blocks {
		n += b.entries
	}
	if n != entries {
		t.Errorf("%d entries, want %d", n, entries)
	}
}

// TestWidthOfSums: sums of short and long logs are comparable, whichever of them is added to or compared with
// the other.
func TestWidthOfSums(t *testing.T) {
	filled := func(from, to uint64, width uint) *LogSums {
		l := NewLogSums()
		for i := from; i < to; i++ {
			l.Note(&dumplog.Entry{Term: 1, Index: i})
		}
		l.flush()
		l.widen(width)
		return l
	}
	const end, half, wide = 4 << firstWidth, 2 << firstWidth, firstWidth + 2
	want := filled(0, end, wide).Blocks()
	if b := want[0]; len(want) != 1 || b.Entries() != end {
		t.Errorf("%v", want)
	}
	for name, widths := range map[string][2]uint{"narrow into wide": {wide, firstWidth},
		"wide into narrow": {firstWidth, wide}, "both wide": {wide, wide}} {
		l := filled(0, half, widths[0])
		if l.join(filled(half, end, widths[1])); l.width != wide || !maps.Equal(l.Blocks(), want) {
			t.Errorf("%s: blocks of width %d: %v", name, l.width, l.Blocks())
		}
	}
	short, long := filled(0, end, firstWidth), filled(0, end, wide)
	if len(short.Blocks()) != 4 {
		t.Errorf("%d blocks of a short log", len(short.Blocks()))
	}
	if w := CommonWidth([]*LogSums{short, long}); w != wide || !maps.Equal(short.Blocks(), long.Blocks()) {
		t.Errorf("common width %d: %v, %v", w, short.Blocks(), long.Blocks())
	}
	for name, e := range map[string]dumplog.Entry{"term": {Term: 2}, "type": {Term: 1, Type: 1},
		"data": {Term: 1, Data: []byte{0}}} {
		l := NewLogSums()
		if l.Note(&e); l.cur == filled(0, 1, firstWidth).blocks[0] || l.cur.entries != 1 {
			t.Errorf("an entry of another %s has the same sum", name)
		}
	}
}
