package dumplog_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestChaos damages a log of many segments in several random places at once: whatever happens, offsets rise, no entry
// comes back that was not written, damage is reported whenever an entry is gone, and Scan, Records and Entries tell the
// same.
func TestChaos(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	writeSegments(t, dir, 42)
	must(t, removeTmp(dir))
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	must(t, err)
	var whole [][]byte
	for _, n := range names {
		b, err := os.ReadFile(n)
		must(t, err)
		whole = append(whole, b)
	}
	written, _ := chaosRead(t, dir, 0)
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		for range 1 + rnd.IntN(5) {
			i := rnd.IntN(len(names))
			must(t, os.WriteFile(names[i], chaosDamage(rnd, slices.Clone(whole[i])), 0o600))
		}
		got, damaged := chaosRead(t, dir, seed)
		for e := range got {
			if written[e] == 0 {
				t.Fatalf("seed %d: invented entry %d/%d", seed, e.term, e.index)
			}
		}
		if len(got) < len(written) && !damaged {
			t.Fatalf("seed %d: %d of %d entries, and no damage", seed, len(got), len(written))
		}
		for i, n := range names {
			must(t, os.WriteFile(n, whole[i], 0o600))
		}
	}
}

// chaosDamage damages one segment in one way.
func chaosDamage(rnd *rand.Rand, b []byte) []byte {
	off := rnd.IntN(len(b))
	n := min(1+rnd.IntN(600), len(b)-off)
	switch rnd.IntN(7) {
	case 0:
		b[off] ^= 1 << rnd.IntN(8)
	case 1:
		clear(b[off : off+n])
	case 2:
		for i := range n {
			b[off+i] = byte(rnd.Uint32())
		}
	case 3:
		return b[:off]
	case 4:
		return slices.Delete(b, off, off+n)
	case 5:
		return slices.Insert(b, off, b[:n]...) // a piece of the log itself, frames and all
	case 6:
		off &^= 511
		clear(b[off:min(off+512, len(b))])
	}
	return b
}

func chaosRead(t *testing.T, dir string, seed uint64) (entries map[seenEntry]int, damaged bool) {
	t.Helper()
	l, err := dumplog.Open(dir)
	must(t, err)
	s, err := l.Scan(context.Background())
	must(t, err)
	entries = map[seenEntry]int{}
	n, damage := 0, 0
	for e, err := range l.Entries(context.Background(), s) {
		if err != nil {
			damage++
			continue
		}
		n++
		entries[seenEntry{0, e.Term, e.Index, string(e.Data)}]++
	}
	if n != s.Records[dumplog.RecordEntry] || damage != len(s.Damage) {
		t.Fatalf("seed %d: Scan saw %d entries and %d damages, Entries %d and %d", seed, s.Records[dumplog.RecordEntry],
			len(s.Damage), n, damage)
	}
	segment, last, records := "", int64(-1), 0
	for r, err := range l.Records(context.Background()) {
		if _, ok := errors.AsType[*dumplog.DamageError](err); ok {
			damage--
			continue
		}
		must(t, err)
		if r.Segment == segment && r.Offset <= last {
			t.Fatalf("seed %d: %s after 0x%x", seed, r.Pos, last)
		}
		segment, last = r.Segment, r.Offset
		if r.Type == dumplog.RecordEntry {
			records++
		}
	}
	if damage != 0 || records != n {
		t.Fatalf("seed %d: Records and Entries differ: %d damages, %d against %d entries", seed, damage, records, n)
	}
	return entries, len(s.Damage) > 0
}
