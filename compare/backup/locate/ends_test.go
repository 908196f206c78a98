package locate_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
	"github.com/etcd-medic/etcd-medic/internal/objects/objectstest"
)

// TestObjectsWithoutAHead: the start of an object may be too short to unpack a single byte, as the first block of zstd
// is longer for content that does not compress. Then only the name shows that it is a backup. It is not an empty
// object.
func TestObjectsWithoutAHead(t *testing.T) {
	random := make([]byte, 1<<18)
	_, err := rand.NewChaCha8([32]byte{}).Read(random)
	ok(t, err)
	dir := t.TempDir()
	dense := packed(t, "zst", random)
	for name, b := range map[string][]byte{"a.db.zst": dense, "notes.zst": dense, "none": nil,
		"nothing.gz": packed(t, "gz", nil), "short": good(t)[:32<<10]} {
		write(t, filepath.Join(dir, "k", name), b)
	}
	f := find(t, locate.Options{}, objectstest.Serve(t, dir).URL("k"))
	same(t, labels(f), "a.db.zst", "short")
	if got, packing := content(t, f.Items[0]); !bytes.Equal(got, random) || packing != nil || !f.Items[0].Packed() {
		t.Errorf("%d bytes, %v", len(got), packing)
	}
	const empty = "an empty file that is not named like a backup"
	const other = "not an etcd database, and not named like a backup"
	for name, want := range map[string]string{"notes.zst": other, "none": empty, "nothing.gz": other} {
		if got := reasonOf(f, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestInnermostLayerDamaged: a file that is packed three times and whose innermost layer holds no content is damaged,
// not empty.
func TestInnermostLayerDamaged(t *testing.T) {
	noise := slices.Concat(packed(t, "gz", nil)[:10], bytes.Repeat([]byte{0xff}, 50))
	root := t.TempDir()
	thrice := packed(t, "gz", packed(t, "gz", noise))
	write(t, filepath.Join(root, "notes"), thrice)
	write(t, filepath.Join(root, "a.db"), thrice)
	f := find(t, locate.Options{}, root)
	same(t, labels(f), "a.db")
	if got := reasonOf(f, "notes"); got != "not an etcd database, and not named like a backup" {
		t.Errorf("%q", got)
	}
	if _, packing := content(t, f.Items[0]); packing == nil {
		t.Error("nothing is said about the packing")
	}
}

// TestNoScratch: without a folder for scratch, whatever has to be copied or unpacked is an error, not a missing backup.
func TestNoScratch(t *testing.T) {
	dir := t.TempDir()
	b := good(t)
	write(t, filepath.Join(dir, "a.db.gz"), packed(t, "gz", b))
	write(t, filepath.Join(dir, "b.zip"), zipped(t, entry{"b.db", b}))
	write(t, filepath.Join(dir, "c.db"), b)
	bucket := objectstest.Serve(t, dir)
	none := filepath.Join(dir, "none")
	o := locate.Options{Scratch: none, Stdin: bytes.NewReader(b)}
	items := slices.Concat(find(t, o, "-").Items, find(t, o, bucket.URL("b.zip")).Items)
	if len(items) != 2 || !errors.Is(items[0].Err, fs.ErrNotExist) || !errors.Is(items[1].Err, fs.ErrNotExist) {
		t.Errorf("found %+v", items)
	}
	for _, where := range []string{filepath.Join(dir, "a.db.gz"), bucket.URL("c.db")} {
		opened, err := find(t, o, where).Items[0].Open(t.Context(), none)
		if opened != nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %+v, %v", where, opened, err)
		}
	}
	if err := find(t, o, "s3://").Items[0].Err; err == nil || !strings.Contains(err.Error(), "want s3://BUCKET/KEY") {
		t.Errorf("an address without a bucket: %v", err)
	}
}

// TestScratchOfObjects: an object is copied to scratch and unpacked there. The copy is removed once it is unpacked, and
// everything once the backup is closed.
func TestScratchOfObjects(t *testing.T) {
	dir := t.TempDir()
	b := good(t)
	write(t, filepath.Join(dir, "a.db"), b)
	write(t, filepath.Join(dir, "b.db.gz"), packed(t, "gz", b))
	bucket := objectstest.Serve(t, dir)
	for _, name := range []string{"a.db", "b.db.gz"} {
		to := t.TempDir()
		o, err := find(t, locate.Options{}, bucket.URL(name)).Items[0].Open(t.Context(), to)
		ok(t, err)
		files, err := filepath.Glob(filepath.Join(to, "*", "*"))
		if err != nil || len(files) != 1 || files[0] != o.Path {
			t.Errorf("%s: %q in scratch, %v", name, files, err)
		}
		ok(t, o.Close())
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
}

// TestFindEndsAnywhere: wherever a search is ended, it returns either the reason or everything, and leaves nothing in
// scratch.
func TestFindEndsAnywhere(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	b := good(t)
	write(t, filepath.Join(dir, "a.db"), b)
	write(t, filepath.Join(dir, "x", "b.db.gz"), packed(t, "gz", b))
	write(t, filepath.Join(dir, "x", "c.zip"), zipped(t, entry{"c.db", b}, entry{"d.db", b}))
	write(t, filepath.Join(dir, "y", "e.tar"), tarred(t, entry{"e.db", b}, entry{"f.db", b}))
	bucket := objectstest.Serve(t, dir)
	zip := []evidence.Spec{{Where: filepath.Join(dir, "x", "c.zip")}}
	endsAnywhere(t, "unpack", func(ctx context.Context) (int, error) {
		u, err := locate.Unpack(ctx, zip, locate.Options{Scratch: to})
		if err != nil {
			return 0, err
		}
		defer func() { ok(t, u.Close()) }()
		return len(u.Specs), nil
	})
	for name, specs := range map[string][]evidence.Spec{"folder": {{Where: dir}},
		"objects": {{Where: bucket.URL("x")}, {Where: bucket.URL("y")}}} {
		endsAnywhere(t, "search in "+name, func(ctx context.Context) (int, error) {
			f, err := locate.Find(ctx, specs, locate.Options{Scratch: to})
			if err != nil {
				return 0, err
			}
			defer func() { ok(t, f.Close()) }()
			return len(f.Items), nil
		})
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// endsAnywhere ends do after each of its questions whether it shall end.
func endsAnywhere(t *testing.T, name string, do func(context.Context) (int, error)) {
	t.Helper()
	whole := ctxtest.EndingAfter(1 << 40)
	want, err := do(whole)
	ok(t, err)
	asked := 1<<40 - whole.Left()
	for n := range asked {
		got, err := do(ctxtest.EndingAfter(n))
		if !errors.Is(err, context.Canceled) && (err != nil || got != want) {
			t.Errorf("%s, after %d of %d: %d of %d, %v", name, n, asked, got, want, err)
		}
	}
	if _, err := do(ctxtest.EndingAfter(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("%s that ends at once: %v", name, err)
	}
}
