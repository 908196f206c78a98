package evidence_test

import (
	"archive/tar"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestTooManyDataDirs: a folder or an archive of more data dirs than any cluster has is refused, with their number and
// what to do, and nothing of it stays in scratch.
func TestTooManyDataDirs(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	folder := t.TempDir()
	for i := range 1001 {
		if err := os.MkdirAll(filepath.Join(folder, fmt.Sprint("n", i), "member", "wal"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	packed := filepath.Join(t.TempDir(), "many.tar")
	f, err := os.Create(packed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for i := range 1001 {
		name := fmt.Sprintf("n%d/member/wal/", i)
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o700}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{folder, packed} {
		_, err := evidence.Open(t.Context(), []evidence.Spec{{Where: where}}, evidence.Options{})
		const many = ": found 1001 data dirs and backups; expected at most 1000"
		if err == nil || !strings.Contains(err.Error(), where+many) {
			t.Errorf("%v", err)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%d files stay in scratch, %v", len(left), err)
	}
}
