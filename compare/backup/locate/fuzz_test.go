package locate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// FuzzPacked reads any bytes as a backup in a file of any name: compressed in layers, a zip or a tar archive. Nothing
// panics, and nothing is left in scratch, also where no more room is allowed.
func FuzzPacked(f *testing.F) {
	small := []byte("no backup, but small")
	for how := range packers {
		f.Add(packed(f, how, small), "x.db."+how)
	}
	f.Add(packed(f, "gz", packed(f, "zst", small)), "x.db.zst.gz")
	f.Add(zipped(f, entry{"x.db", small}, entry{"../y.db", packed(f, "xz", small)}), "x.zip")
	f.Add(tarred(f, entry{"a/x.db", small}, entry{"/y.db", packed(f, "gz", small)}), "x.tar")
	f.Add(packed(f, "xz", tarred(f, entry{"x.db", small})), "Full-00000000-00000001-1700000000.xz")
	f.Add(small, "auto-20240101")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		dir, to := t.TempDir(), t.TempDir()
		t.Setenv("TMPDIR", to)
		name = filepath.Base(filepath.Clean("/" + name))
		if len(name) > 100 || name == "/" || os.WriteFile(filepath.Join(dir, name), b, 0o600) != nil {
			return // no name of a file
		}
		const room = 1 << 20
		locate.WithBudget(t, room)
		found, err := locate.Find(t.Context(), []evidence.Spec{{Where: filepath.Join(dir, name)}}, locate.Options{})
		ok(t, err)
		for _, it := range found.Items {
			opened, err := it.Open(t.Context(), to)
			if err != nil {
				continue
			}
			ok(t, opened.Close())
		}
		ok(t, found.Close())
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	})
}
