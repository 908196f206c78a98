package archive_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
)

// FuzzUnpack feeds arbitrary bytes: nothing may panic, nothing may appear beside the destination, and no more than the
// limit may be unpacked.
func FuzzUnpack(f *testing.F) {
	seed, err := os.ReadFile("testdata/seed.tar")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:700])
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		up := t.TempDir()
		file := filepath.Join(up, "x.tar")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		const limit = 1 << 20
		_ = archive.UnpackWithin(t.Context(), file, filepath.Join(up, "in"), limit, 100)
		entries, err := os.ReadDir(up)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != "x.tar" && e.Name() != "in" {
				t.Errorf("%s appeared beside the destination", e.Name())
			}
		}
		var total int64
		_ = filepath.Walk(filepath.Join(up, "in"), func(_ string, st os.FileInfo, err error) error {
			if err == nil && st.Mode().IsRegular() {
				total += st.Size()
			}
			return nil
		})
		if total > 100*limit { // a hard link repeats its target's size
			t.Errorf("%d bytes unpacked", total)
		}
	})
}

// TestSeedUnpacks holds the seed to what it is meant to be, an archive with a directory, a file, a sparse file and a
// hard link.
func TestSeedUnpacks(t *testing.T) {
	dest := t.TempDir()
	if err := archive.Unpack(t.Context(), "testdata/seed.tar", dest); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(dest, "d", "sparse"))
	if err != nil || st.Size() != 1<<20 {
		t.Errorf("sparse file: %v, %v", st, err)
	}
	for _, name := range []string{"d/file", "d/link"} {
		if b, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(b) != "content\n" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	f, err := os.Open("testdata/seed.tar")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	tr := tar.NewReader(f)
	kinds := map[byte]bool{}
	for hdr, err := tr.Next(); err == nil; hdr, err = tr.Next() {
		kinds[hdr.Typeflag] = true
	}
	for _, k := range []byte{tar.TypeDir, tar.TypeReg, tar.TypeLink, tar.TypeGNUSparse} {
		if !kinds[k] {
			t.Errorf("the seed has no entry of type %q", k)
		}
	}
}
