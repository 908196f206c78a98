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

// BenchmarkLog reads a log of 500,000 entries and 0.55 GB in nine segments.
func BenchmarkLog(b *testing.B) {
	dir := benchLog(b)
	names, _ := filepath.Glob(filepath.Join(dir, "*.wal"))
	var size int64
	for _, n := range names {
		fi, err := os.Stat(n)
		must(b, err)
		size += fi.Size()
	}
	for _, c := range []struct {
		name string
		run  func(b *testing.B, dir string, names []string)
	}{{"floor-read-and-crc-one-core", benchFloor}, {"Scan", benchScan}, {"Stats", benchStats},
		{"EntriesDecode", benchEntriesDecode}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				c.run(b, dir, names)
			}
			var ms runtime.MemStats
			runtime.ReadMemStats(&ms)
			b.ReportMetric(float64(ms.Sys)/(1<<20), "MB-sys")
		})
	}
}

func benchFloor(b *testing.B, _ string, names []string) {
	buf := make([]byte, 256<<10)
	for _, n := range names {
		f, err := os.Open(n)
		must(b, err)
		h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		_, err = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf)
		must(b, err)
		must(b, f.Close())
	}
}

func benchOpen(b *testing.B, dir string) *dumplog.Log {
	l, err := dumplog.Open(dir)
	must(b, err)
	return l
}

func benchScan(b *testing.B, dir string, _ []string) {
	s, err := benchOpen(b, dir).Scan(context.Background())
	must(b, err)
	if s.LastIndex != benchEntries || len(s.Damage) != 0 {
		b.Fatalf("last index %d, damage %v", s.LastIndex, s.Damage)
	}
}

func benchStats(b *testing.B, dir string, _ []string) {
	st, _, err := benchOpen(b, dir).Stats(context.Background(), nil)
	must(b, err)
	if st.Kinds[dumplog.KindPut].Entries != benchEntries {
		b.Fatalf("puts: %d", st.Kinds[dumplog.KindPut].Entries)
	}
}

func benchEntriesDecode(b *testing.B, dir string, _ []string) {
	n := 0
	var d dumplog.Decoder
	for e, err := range benchOpen(b, dir).Entries(context.Background(), nil) {
		must(b, err)
		_, err := d.Decode(&e)
		must(b, err)
		n++
	}
	if n != benchEntries {
		b.Fatal(n)
	}
}
