//go:build unix

package spill_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/internal/spill"
)

// TestTake: pieces are zero, do not overlap, and keep what is written to them; no name of the file is left.
func TestTake(t *testing.T) {
	dir := evidencetest.DiskDir(t)
	a := spill.New(dir)
	sizes := []int{1, 4 << 10, 24 << 10, 24<<10 + 1, 1 << 20, 32 << 10}
	var pieces [][]byte
	for i := range 200 {
		size := sizes[i%len(sizes)]
		if i == 100 {
			size = 100 << 20
		}
		p := a.Take(size)
		if len(p) < size || !bytes.Equal(p, make([]byte, len(p))) {
			t.Fatalf("piece %d of %d bytes: %v", i, len(p), a.Err())
		}
		for j := 0; j < len(p); j += 4 << 10 {
			p[j], p[len(p)-1] = byte(i+1), byte(i+1)
		}
		pieces = append(pieces, p)
	}
	for i, p := range pieces {
		if p[0] == 0 || p[0] != p[len(p)-1] || i > 0 && p[0] == pieces[i-1][0] {
			t.Errorf("piece %d was overwritten", i)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%d names are left: %v", len(left), err)
	}
}

// TestGive: what is given back is handed out again, zero.
func TestGive(t *testing.T) {
	a := spill.New(evidencetest.DiskDir(t))
	p := a.Take(24 << 10)
	if p == nil {
		t.Fatal(a.Err())
	}
	size := a.Size()
	for range 10_000 {
		p[0], p[len(p)-1] = 1, 1
		a.Give(p)
		if p = a.Take(24 << 10); p[0] != 0 || p[len(p)-1] != 0 {
			t.Fatal("what was written before is still there")
		}
	}
	if a.Size() != size {
		t.Errorf("%d bytes, %d at first", a.Size(), size)
	}
}

// TestTakeAtOnce: several goroutines get different pieces.
func TestTakeAtOnce(t *testing.T) {
	a := spill.New(evidencetest.DiskDir(t))
	var g sync.WaitGroup
	for n := range 8 {
		g.Go(func() {
			var mine [][]byte
			for range 500 {
				p := a.Take(8 << 10)
				p[0] = byte(n + 1)
				mine = append(mine, p)
			}
			runtime.Gosched()
			for _, p := range mine {
				if p[0] != byte(n+1) {
					t.Error("two have one piece")
					return
				}
			}
		})
	}
	g.Wait()
}

// TestNone: without a folder to write to there is no memory, and the reason is known.
func TestNone(t *testing.T) {
	a := spill.New(filepath.Join(t.TempDir(), "absent"))
	if p := a.Take(1); p != nil || a.Err() == nil || a.Size() != 0 {
		t.Errorf("%d bytes, error %v", len(p), a.Err())
	}
	var none *spill.Area
	if p := none.Take(1); p != nil || none.Err() != nil {
		t.Errorf("of no area: %d bytes", len(p))
	}
	none.Give(nil)
}
