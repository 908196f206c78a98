package dumplog_test

import (
	"context"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

const (
	benchEntries = 500_000
	benchValue   = 1000
)

// benchLog writes the log of the benchmarks once per process.
func benchLog(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "wal")
	writeMany(b, dir, benchEntries, benchValue)
	return dir
}

func BenchmarkLog(b *testing.B) {
	dir := benchLog(b)
	var size int64
	names, _ := filepath.Glob(filepath.Join(dir, "*.wal"))
	for _, n := range names {
		fi, err := os.Stat(n)
		must(b, err)
		size += fi.Size()
	}
	ctx := context.Background()
	open := func(b *testing.B) *dumplog.Log {
		l, err := dumplog.Open(dir)
		must(b, err)
		return l
	}
	b.Run("floor-read-and-crc-one-core", func(b *testing.B) {
		b.SetBytes(size)
		buf := make([]byte, 256<<10)
		for b.Loop() {
			for _, n := range names {
				f, err := os.Open(n)
				must(b, err)
				h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
				_, err = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf)
				must(b, err)
				f.Close()
			}
		}
	})
	b.Run("Scan", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			s, err := open(b).Scan(ctx)
			must(b, err)
			if s.LastIndex != benchEntries || len(s.Damage) != 0 {
				b.Fatalf("last index %d, damage %v", s.LastIndex, s.Damage)
			}
		}
	})
	b.Run("Stats", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			st, _, err := open(b).Stats(ctx, nil)
			must(b, err)
			if st.Kinds[dumplog.KindPut].Entries != benchEntries {
				b.Fatalf("puts: %d", st.Kinds[dumplog.KindPut].Entries)
			}
		}
	})
	b.Run("EntriesDecode", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		var ms runtime.MemStats
		for b.Loop() {
			n := 0
			var d dumplog.Decoder
			for e, err := range open(b).Entries(ctx, nil) {
				must(b, err)
				if _, err := d.Decode(&e); err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != benchEntries {
				b.Fatal(n)
			}
		}
		runtime.ReadMemStats(&ms)
		b.ReportMetric(float64(ms.Sys)/(1<<20), "MB-sys")
	})
}
