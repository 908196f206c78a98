package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

// maxPage is what a page may have at most, so that people can attach it to a bug.
const maxPage = 20e6

// BenchmarkReport writes the page of two members with databases of 1.4 GB. One of them lacks a write, so that the
// revisions of 100,000 keys differ.
func BenchmarkReport(b *testing.B) {
	pair := setSize
	pair.Members = 2
	pair.Skip = map[int]map[int]bool{1: {900_000: true}}
	dirs := pair.Write(b, b.TempDir())
	page := filepath.Join(b.TempDir(), "report.html")
	var best usage
	for b.Loop() {
		_ = os.Remove(page)
		u := run(b, program(b), append([]string{"report", "-o", page}, dirs...)...)
		if best.took == 0 || u.took < best.took {
			best.took, best.cpu = u.took, u.cpu
		}
		best.anon = max(best.anon, u.anon)
	}
	fi, err := os.Stat(page)
	if err != nil {
		b.Fatal(err)
	}
	if fi.Size() > maxPage {
		b.Errorf("the page has %d bytes", fi.Size())
	}
	b.ReportMetric(best.took.Seconds(), "own-s")
	b.ReportMetric(best.cpu.Seconds(), "own-cpu-s")
	b.ReportMetric(float64(best.anon)/1e6, "own-anon-MB")
	b.ReportMetric(float64(fi.Size())/1e6, "page-MB")
}
