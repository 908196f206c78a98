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
