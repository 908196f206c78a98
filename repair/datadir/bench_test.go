package datadir_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// BenchmarkClone clones one member with a database of 1 GB, and copies the same file plainly beside it in the same run:
// the clone has to reach at least half the speed of the copy. Both sync what they wrote.
func BenchmarkClone(b *testing.B) {
	dir := b.TempDir()
	dirs := clustertest.Synth{Members: 1, Entries: 470_000, Keys: 50_000, Value: 2000}.Write(b, dir)
	set := openSet(b, dirs...)
	best, list := set.Members[0], targets(b, set)
	size := best.DB.Handle.Size()
	b.SetBytes(size)
	var plain, clone time.Duration
	n := 0
	for b.Loop() {
		at := time.Now()
		dst := filepath.Join(dir, fmt.Sprint("plain", n))
		copyPlain(b, dst, best.Source.Parts().DB)
		plain += time.Since(at)
		ok(b, os.Remove(dst))
		at = time.Now()
		dst = filepath.Join(dir, fmt.Sprint("clone", n))
		_, err := datadir.Clone(context.Background(), best, list, dst, datadir.CloneOptions{})
		ok(b, err)
		clone += time.Since(at)
		ok(b, os.RemoveAll(dst))
		n++
	}
	mb := func(d time.Duration) float64 { return float64(size) * float64(n) / 1e6 / d.Seconds() }
	b.ReportMetric(mb(plain), "copy-MB/s")
	b.ReportMetric(mb(clone), "clone-MB/s")
	if clone > 2*plain {
		b.Errorf("clone %.0f MB/s, plain copy %.0f MB/s: less than half", mb(clone), mb(plain))
	}
}

func copyPlain(b *testing.B, dst, src string) {
	b.Helper()
	in, err := os.Open(src)
	ok(b, err)
	defer in.Close()
	out, err := os.Create(dst)
	ok(b, err)
	_, err = io.Copy(out, in)
	ok(b, err)
	ok(b, out.Sync())
	ok(b, out.Close())
}
