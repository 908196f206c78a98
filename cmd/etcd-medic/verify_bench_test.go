package main_test

import (
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkVerify compares with the two tools an operator has today, one after the other, over one backup of 1.4 GB:
// etcdutl snapshot status, which reads the content, and sha256sum, which alone would notice a flipped byte.
func BenchmarkVerify(b *testing.B) {
	file := filepath.Join(b.TempDir(), "backup.db")
	dbSize.WriteDB(b, file)
	appendTrailer(b, file)
	bin := program(b)
	status := run(b, peer(b, "etcdutl-3.6"), "snapshot", "status", file)
	sum, err := exec.LookPath("sha256sum")
	if err != nil {
		b.Fatal(err)
	}
	sha := run(b, sum, file)
	var best usage
	for b.Loop() {
		u := run(b, bin, "verify", "-q", file)
		if best.took == 0 || u.took < best.took {
			best.took = u.took
		}
		best.anon = max(best.anon, u.anon)
	}
	theirs := status.took + sha.took
	b.ReportMetric(status.took.Seconds(), "status-s")
	b.ReportMetric(sha.took.Seconds(), "sha256sum-s")
	b.ReportMetric(best.took.Seconds(), "own-s")
	b.ReportMetric(theirs.Seconds()/best.took.Seconds(), "times-faster")
	b.ReportMetric(float64(best.anon)/1e6, "own-anon-MB")
	b.ReportMetric(float64(max(status.anon, sha.anon))/1e6, "peer-anon-MB")
}

// appendTrailer makes a backup of a database as snapshot save does.
func appendTrailer(b *testing.B, path string) {
	b.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		b.Fatal(err)
	}
	if _, err := f.Write(h.Sum(nil)); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}
