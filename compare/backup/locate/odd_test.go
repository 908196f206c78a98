package locate_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// reasonOf returns why a path was skipped.
func reasonOf(f *locate.Found, name string) string {
	for _, s := range f.Skipped {
		if filepath.Base(s.Path) == name {
			return s.Reason
		}
	}
	return ""
}

// TestDataDirsAmongBackups: a data dir is known by any part of it, and none of its files is called a backup.
func TestDataDirsAmongBackups(t *testing.T) {
	root := t.TempDir()
	b := good(t)
	for _, file := range []string{"a/member/snap/db", "b/member/wal/0.wal", "c/wal/0.wal", "d/snap/db", "[e]/wal/0.wal"} {
		write(t, filepath.Join(root, file), b)
	}
	ok(t, os.MkdirAll(filepath.Join(root, "f/wal"), 0o700))
	ok(t, os.MkdirAll(filepath.Join(root, "f/snap"), 0o700))
	write(t, filepath.Join(root, "g/snap/other.db"), b)
	write(t, filepath.Join(root, "h/wal/notes.db"), b)
	f := find(t, locate.Options{}, root)
	same(t, labels(f), "other.db", "notes.db")
	for _, name := range []string{"a", "b", "c", "d", "[e]", "f"} {
		if !strings.Contains(reasonOf(f, name), "a data dir") {
			t.Errorf("%s: %q", name, reasonOf(f, name))
		}
	}
}

// TestDeepFolders: folders are searched to a depth, and what is deeper is an error, not nothing.
func TestDeepFolders(t *testing.T) {
	root := t.TempDir()
	dir := root
	for i := range 16 {
		dir = filepath.Join(dir, fmt.Sprint(i))
	}
	write(t, filepath.Join(dir, "a.db"), good(t))
	f := find(t, locate.Options{}, root)
	if same(t, labels(f), "a.db"); f.Items[0].Err != nil {
		t.Error(f.Items[0].Err)
	}
	write(t, filepath.Join(dir, "x/b.db"), good(t))
	f = find(t, locate.Options{}, root)
	if len(f.Items) != 2 || f.Items[1].Err == nil || !strings.Contains(f.Items[1].Err.Error(), "more than 16 folders") {
		t.Errorf("%q", labels(f))
	}
}

// TestCutWithoutAName: a packed backup that was cut is known by what comes out before the damage, whatever its name;
// what never unpacks is skipped with a reason.
func TestCutWithoutAName(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "monday"), half(packed(t, "gz", good(t))))
	write(t, filepath.Join(root, "notes"), append(packed(t, "gz", nil)[:10], bytes.Repeat([]byte{0xff}, 50)...))
	f := find(t, locate.Options{}, root)
	same(t, labels(f), "monday")
	if reasonOf(f, "notes") == "" {
		t.Errorf("%+v", f.Skipped)
	}
	if _, packing := content(t, f.Items[0]); packing == nil {
		t.Error("nothing is said about the packing")
	}
}

// TestEntriesOfArchives: what is in an archive and is no backup is skipped with its reason.
func TestEntriesOfArchives(t *testing.T) {
	b := good(t)
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	for _, h := range []*zip.FileHeader{{Name: "folder/"}, {Name: "one.db"}, {Name: "sealed.db", Flags: 1}, {Name: "link.db"},
		{Name: "two.db.part"}, {Name: "node1/member/snap/db"}, {Name: "Incr-00000006-00000007-1700000009"}} {
		if h.Name == "link.db" {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		e, err := w.CreateHeader(h)
		ok(t, err)
		if !strings.HasSuffix(h.Name, "/") {
			_, err = e.Write(b)
			ok(t, err)
		}
	}
	ok(t, w.Close())
	var tb bytes.Buffer
	tw := tar.NewWriter(&tb)
	for _, h := range []*tar.Header{{Name: "pax_global_header", Typeflag: tar.TypeXGlobalHeader,
		PAXRecords: map[string]string{"comment": "x"}}, {Name: "folder", Typeflag: tar.TypeDir}, {Name: "link.db", Typeflag: tar.TypeSymlink,
		Linkname: "one.db"}, {Name: "one.db", Typeflag: tar.TypeReg, Size: int64(len(b)), ModTime: time.Unix(0, 0)}} {
		ok(t, tw.WriteHeader(h))
		if h.Size > 0 {
			_, err := tw.Write(b)
			ok(t, err)
		}
	}
	ok(t, tw.Close())
	root := t.TempDir()
	write(t, filepath.Join(root, "a.zip"), z.Bytes())
	write(t, filepath.Join(root, "b.tar"), tb.Bytes())
	f := find(t, locate.Options{}, filepath.Join(root, "a.zip"))
	same(t, labels(f), "one.db", "sealed.db")
	if err := f.Items[1].Err; err == nil || !strings.Contains(err.Error(), "encrypted") {
		t.Errorf("sealed: %v", err)
	}
	for name, why := range map[string]string{"link.db": "neither a file", "two.db.part": "an incomplete file",
		"db": "part of a data dir", "Incr-00000006-00000007-1700000009": "a delta snapshot in an archive"} {
		if got := reasonOf(f, name); !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q", name, got, why)
		}
	}
	archive := filepath.Join(root, "b.tar")
	f = find(t, locate.Options{}, archive)
	same(t, labels(f), "one.db")
	st, err := os.Stat(archive)
	ok(t, err)
	if len(f.Skipped) != 1 || reasonOf(f, "link.db") != "a link or device in an archive" || !f.Items[0].Modified.Equal(st.ModTime()) {
		t.Errorf("%+v, an entry without a time is of %v", f.Skipped, f.Items[0].Modified)
	}
}

// TestChainsOfFolders: deltas belong to their full snapshot; without one they are an error, before it they are skipped.
func TestChainsOfFolders(t *testing.T) {
	root := t.TempDir()
	b := good(t)
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, err := w.Write(b)
	ok(t, errors.Join(err, w.Close()))
	const orphan, delta = "Incr-00000002-00000004-1700000001", "Incr-00000006-00000007-1700000009"
	full := "Full-00000000-00000005-1700000005.zlib"
	write(t, filepath.Join(root, "a", orphan), nil)
	write(t, filepath.Join(root, "a", full), z.Bytes())
	write(t, filepath.Join(root, "a", delta), nil)
	write(t, filepath.Join(root, "b", delta), nil)
	f := find(t, locate.Options{}, root)
	if len(f.Items) != 2 || f.Items[0].Chain == nil || len(f.Items[0].Chain.Deltas) != 1 || !f.Items[0].Packed() ||
		f.Items[0].Modified.Unix() != 1_700_000_009 || f.Items[1].Err == nil {
		t.Fatalf("%q: %+v", labels(f), f.Items)
	}
	if err := f.Items[1].Err.Error(); !strings.Contains(err, "1 delta snapshots and no full snapshot") {
		t.Error(err)
	}
	if !strings.Contains(reasonOf(f, orphan), "before the first full snapshot") {
		t.Errorf("%+v", f.Skipped)
	}
	if got, packing := content(t, f.Items[0]); !bytes.Equal(got, b) || packing != nil {
		t.Errorf("%d bytes of the full snapshot, %v", len(got), packing)
	}
	f = find(t, locate.Options{}, filepath.Join(root, "a", full), filepath.Join(root, "a", delta))
	if got, packing := content(t, f.Items[0]); !bytes.Equal(got, b) || packing != nil || f.Items[0].Chain != nil {
		t.Errorf("a full snapshot that is named: %d bytes, %v", len(got), packing)
	}
	if err := f.Items[1].Err; err == nil || !strings.Contains(err.Error(), "a delta snapshot alone") {
		t.Errorf("a delta that is named: %v", err)
	}
}

// TestChanged: a file that is written to after it was found is known by its size or its time. One that is gone
// is an error.
func TestChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	b := good(t)
	at := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		change func()
		want   string
	}{
		"unchanged": {func() {}, ""},
		"longer": {func() {
			write(t, path, append(slices.Clone(b), 0))
			ok(t, os.Chtimes(path, at, at))
		}, "changed while it was read"},
		"later": {func() { ok(t, os.Chtimes(path, at, at.Add(time.Second))) }, "changed while it was read"},
		"gone":  {func() { ok(t, os.Remove(path)) }, "no such file"},
	} {
		write(t, path, b)
		ok(t, os.Chtimes(path, at, at))
		it := find(t, locate.Options{}, path).Items[0]
		c.change()
		if err := it.Changed(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := (&locate.Item{}).Changed(); err != nil {
		t.Errorf("of no file: %v", err)
	}
}

// TestArchiveChanged: what an archive no longer holds is damage of the packing, a missing file an error.
func TestArchiveChanged(t *testing.T) {
	b := good(t)
	x, y := entry{"x.db", b}, entry{"y.db", b}
	for name, c := range map[string]struct{ before, after []byte }{
		"a.tar": {tarred(t, x, y), tarred(t, x)},
		"b.zip": {zipped(t, x, y), zipped(t, x)},
		"c.zip": {zipped(t, x, y), []byte("no zip")},
		"d.tar": {tarred(t, x, y), tarred(t, x, entry{"y.db", []byte("other")})},
		"e.tgz": {packed(t, "gz", tarred(t, x, y)), []byte{0x1f, 0x8b, 7}},
	} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, c.before)
		it := find(t, locate.Options{}, path).Items[1]
		write(t, path, c.after)
		got, packing := content(t, it)
		if want := strings.TrimPrefix(name, "d.tar") == ""; (packing == nil) != want || want && string(got) != "other" {
			t.Errorf("%s: %q, %v", name, got, packing)
		}
		ok(t, os.Remove(path))
		to := t.TempDir()
		if _, err := it.Open(t.Context(), to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is gone: %v", name, err)
		}
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("%s is gone: %v is left, %v", name, left, err)
		}
	}
}

// TestCanceled: a search that is ended returns the reason and leaves nothing in scratch.
func TestCanceled(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "a.db.gz"), packed(t, "gz", good(t)))
	it := find(t, locate.Options{}, dir).Items[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	specs := []evidence.Spec{{Where: filepath.Join(dir, "a.db.gz")}, {Where: "-"}}
	o := locate.Options{Scratch: to, Stdin: strings.NewReader("x")}
	_, err := locate.Find(ctx, specs, o)
	_, unpacked := locate.Unpack(ctx, specs, o)
	_, opened := it.Open(ctx, to)
	for name, err := range map[string]error{"find": err, "unpack": unpacked, "open": opened} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestNamedTwice: a file that is named by a link and by itself is one backup; what is missing twice has two labels.
func TestNamedTwice(t *testing.T) {
	root := t.TempDir()
	path, link, none := filepath.Join(root, "a.db"), filepath.Join(root, "latest.db"), filepath.Join(root, "none.db")
	write(t, path, good(t))
	ok(t, os.Symlink("a.db", link))
	f := find(t, locate.Options{}, link, path)
	same(t, labels(f), "latest.db")
	if !strings.Contains(reasonOf(f, "a.db"), "the same file as") {
		t.Errorf("%+v", f.Skipped)
	}
	f = find(t, locate.Options{}, none, none)
	if got := labels(f); len(got) != 2 || got[0] == got[1] || !strings.HasSuffix(got[1], "none.db#2") {
		t.Errorf("%q", got)
	}
	f = find(t, locate.Options{}, "http://127.0.0.1:2379")
	if same(t, labels(f), "http://127.0.0.1:2379"); f.Items[0].Err != nil || f.Items[0].Modified.IsZero() {
		t.Errorf("%+v", f.Items[0])
	}
}

// TestParseShard: what is no part of a whole is refused.
func TestParseShard(t *testing.T) {
	for text, want := range map[string]string{"0/1": "{0 1 false}", "2/3": "{2 3 false}", "0/100000": "{0 100000 false}",
		"3/3": "", "-1/3": "", "0/0": "", "1": "", "": "", "x/3": "", "1/x": "", "1/3/5": "", "0/100001": ""} {
		got, err := locate.ParseShard(text)
		if (err == nil) != (want != "") || want != "" && fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

// TestUnknownMethodInAZip: a file in an archive that is packed in an unknown way is a damaged backup if it is named
// like one, and the others are found.
func TestUnknownMethodInAZip(t *testing.T) {
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	for _, name := range []string{"odd.db", "notes"} {
		e, err := w.CreateRaw(&zip.FileHeader{Name: name, Method: 99, CompressedSize64: 3, UncompressedSize64: 3})
		ok(t, err)
		_, err = e.Write([]byte("abc"))
		ok(t, err)
	}
	e, err := w.Create("sound.db")
	ok(t, err)
	_, err = e.Write(good(t))
	ok(t, errors.Join(err, w.Close()))
	path := filepath.Join(t.TempDir(), "a.zip")
	write(t, path, z.Bytes())
	f := find(t, locate.Options{}, path)
	same(t, labels(f), "odd.db", "sound.db")
	if reasonOf(f, "notes") == "" || len(f.Skipped) != 1 {
		t.Errorf("%+v", f.Skipped)
	}
	if b, packing := content(t, f.Items[0]); len(b) > 0 || !errors.Is(packing, zip.ErrAlgorithm) {
		t.Errorf("%d bytes, %v", len(b), packing)
	}
}

// TestCutAfterTheMagic: what cannot be unpacked at all is a damaged backup if it is named like one.
func TestCutAfterTheMagic(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.db.zst", "b.zst"} {
		write(t, filepath.Join(root, name), []byte("\x28\xb5\x2f\xfd\xff\xff\xff"))
	}
	f := find(t, locate.Options{}, root)
	same(t, labels(f), "a.db.zst")
	if reasonOf(f, "b.zst") == "" {
		t.Errorf("%+v", f.Skipped)
	}
	if _, packing := content(t, f.Items[0]); packing == nil {
		t.Error("nothing is said about the packing")
	}
	_, err := locate.Find(t.Context(), nil, locate.Options{})
	ok(t, err)
	below := find(t, locate.Options{}, filepath.Join(root, "b.zst", "below")).Items[0].Err
	none := find(t, locate.Options{}, filepath.Join(root, "none")).Items[0].Err
	var bad *evidence.SourceError
	if !errors.As(below, &bad) || bad.Found != "a path that cannot be read" {
		t.Errorf("below a file: %v", below)
	}
	if !errors.As(none, &bad) || bad.Found != "nothing at this path" {
		t.Errorf("nothing there: %v", none)
	}
}

// TestUnpackWithoutRoom: a source for which there is no room stays as it is.
func TestUnpackWithoutRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db.gz")
	write(t, path, packed(t, "gz", good(t)))
	locate.WithBudget(t, 10)
	to := t.TempDir()
	u, err := locate.Unpack(t.Context(), []evidence.Spec{{Where: path}}, locate.Options{Scratch: to})
	ok(t, err)
	if len(u.Specs) != 1 || u.Specs[0].Where != path {
		t.Errorf("%+v", u.Specs)
	}
	ok(t, u.Close())
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("left in scratch: %v, %v", left, err)
	}
}

// TestTimesOfStdin: what is piped in has no time, but a file of an archive has its own.
func TestTimesOfStdin(t *testing.T) {
	b := good(t)
	f := find(t, locate.Options{Stdin: bytes.NewReader(tarred(t, entry{"x.db", b}))}, "-")
	if f.Items[0].Modified.Unix() != 1_700_000_000 {
		t.Errorf("of an archive: %v", f.Items[0].Modified)
	}
	f = find(t, locate.Options{Stdin: bytes.NewReader(b)}, "-")
	if !f.Items[0].Modified.IsZero() {
		t.Errorf("of a file: %v", f.Items[0].Modified)
	}
}
