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
	packDirs(t, packed, 1001)
	archives := t.TempDir()
	packDirs(t, filepath.Join(archives, "a.tar"), 500)
	packDirs(t, filepath.Join(archives, "b.tar"), 501)
	for _, where := range []string{folder, packed, archives} {
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

// packDirs writes an archive of empty data dirs.
func packDirs(t *testing.T, path string, n int) {
	t.Helper()
	var dirs []*tar.Header
	for i := range n {
		dirs = append(dirs, &tar.Header{Name: fmt.Sprintf("n%d/member/wal/", i), Typeflag: tar.TypeDir, Mode: 0o700})
	}
	pack(t, path, dirs, nil)
}

// pack writes an archive of entries, the last of which has content if it is not nil.
func pack(t *testing.T, path string, entries []*tar.Header, content []byte) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	w := tar.NewWriter(f)
	for _, h := range entries {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(content); content != nil && err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestArchivesInArchives: a folder of archives is read, and an archive in an archive, but no deeper.
func TestArchivesInArchives(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "0.tar")
	packDirs(t, path, 2)
	for i := range 3 {
		_, err := evidence.Open(t.Context(), []evidence.Spec{{Where: path}}, evidence.Options{})
		if deep := err != nil && strings.Contains(err.Error(), "archives in archives"); deep != (i == 2) {
			t.Errorf("%d archives around it: %v", i, err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		path = filepath.Join(dir, fmt.Sprint(i+1, ".tar"))
		pack(t, path, []*tar.Header{{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content))}},
			content)
	}
}
