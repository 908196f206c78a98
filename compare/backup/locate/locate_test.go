package locate_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

func good(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(evidencetest.Incident(t, "o-backup-good"), "backup.db"))
	ok(t, err)
	return b
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	ok(t, os.MkdirAll(filepath.Dir(path), 0o700))
	ok(t, os.WriteFile(path, b, 0o600))
}

type opener func(io.Writer) (io.WriteCloser, error)

var packers = map[string]opener{
	"gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	"xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
}

func packed(t testing.TB, how string, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := packers[how](&out)
	ok(t, err)
	_, err = w.Write(b)
	ok(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

type entry struct {
	name string
	b    []byte
}

func zipped(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, e := range entries {
		w, err := z.Create(e.name)
		ok(t, err)
		_, err = w.Write(e.b)
		ok(t, err)
	}
	ok(t, z.Close())
	return out.Bytes()
}

func tarred(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		ok(t, w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o600, Size: int64(len(e.b)),
			ModTime: time.Unix(1_700_000_000, 0)}))
		_, err := w.Write(e.b)
		ok(t, err)
	}
	ok(t, w.Close())
	return out.Bytes()
}

func find(t *testing.T, o locate.Options, where ...string) *locate.Found {
	t.Helper()
	var specs []evidence.Spec
	for _, w := range where {
		s, err := evidence.ParseSpec(w)
		ok(t, err)
		specs = append(specs, s)
	}
	f, err := locate.Find(t.Context(), specs, o)
	ok(t, err)
	t.Cleanup(func() { ok(t, f.Close()) })
	return f
}

func labels(f *locate.Found) []string {
	var out []string
	for _, it := range f.Items {
		out = append(out, it.Label)
	}
	return out
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// content unpacks an item and returns what came out.
func content(t *testing.T, it *locate.Item) (b []byte, packing error) {
	t.Helper()
	o, err := it.Open(t.Context(), t.TempDir())
	ok(t, err)
	b, err = os.ReadFile(o.Path)
	ok(t, errors.Join(err, o.Close()))
	return b, o.Packing
}

// TestEveryPackingAndName: whatever a backup is packed in and called, it is found and comes out byte by byte.
func TestEveryPackingAndName(t *testing.T) {
	b := good(t)
	dir := t.TempDir()
	files := map[string][]byte{
		"etcd-snapshot-node1-1700000000": b, // k3s, rke2
		"on-demand-node1-1700000001.zip": zipped(t, entry{"on-demand-node1-1700000001", b}),
		"etcdadm/snapshot.db":            b,
		"weekly/2024-05-01":              b,
		"gz/backup.db.gz":                packed(t, "gz", b),
		"zst/backup.db.zst":              packed(t, "zst", b),
		"xz/backup.db.xz":                packed(t, "xz", b),
		"misnamed":                       packed(t, "gz", b),
		"twice.db.gz.zst":                packed(t, "zst", packed(t, "gz", b)),
		"set.tar.gz": packed(t, "gz",
			tarred(t, entry{"./a/one.db", b}, entry{"b/two.db", packed(t, "xz", b)},
				entry{"README", []byte("hello\n")})),
		"plain.tar":     tarred(t, entry{"kubeadm-etcd.snapshot", b}),
		"raw/head-lost": append(bytes.Repeat([]byte{7}, 8192), b[8192:]...),
		".metadata/etcd-snapshot-node1-1700000000": []byte(`{"name":"etcd-snapshot-node1-1700000000"}`),
		"backup.db.sha256":                         []byte("0123  backup.db\n"),
		"running.db.part":                          b[:9000],
		"holiday.jpg":                              {0xff, 0xd8, 0xff, 0xe0, 1, 2, 3},
	}
	for name, b := range files {
		write(t, filepath.Join(dir, name), b)
	}
	evidencetest.Unchanged(t, dir)
	f := find(t, locate.Options{}, dir)
	same(t, labels(f), "etcd-snapshot-node1-1700000000", "snapshot.db", "backup.db.gz", "misnamed",
		"on-demand-node1-1700000001", "kubeadm-etcd.snapshot",
		"head-lost", "one.db", "two.db", "twice.db.gz.zst", "2024-05-01", "backup.db.xz", "backup.db.zst")
	for _, it := range f.Items {
		got, packing := content(t, it)
		if it.Label != "head-lost" && !bytes.Equal(got, b) || packing != nil || it.Modified.IsZero() {
			t.Errorf("%s: %d bytes, %v, %v", it.Label, len(got), packing, it.Modified)
		}
	}
	var skipped []string
	for _, s := range f.Skipped {
		skipped = append(skipped, filepath.Base(s.Path))
		if s.Reason == "" {
			t.Errorf("%s: no reason", s.Path)
		}
	}
	slices.Sort(skipped)
	same(t, skipped, "README", "backup.db.sha256", "etcd-snapshot-node1-1700000000", "holiday.jpg", "running.db.part")
}

func half(b []byte) []byte { return b[:len(b)/2] }

// TestDamagedIsNotSkipped: files named like a backup, or like the backups next to them, are never passed over for what
// they hold.
func TestDamagedIsNotSkipped(t *testing.T) {
	b := good(t)
	noise := make([]byte, 30_000)
	r := rand.NewChaCha8([32]byte{3})
	_, _ = r.Read(noise)
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"auto-20240101": b, "auto-20240102": make([]byte, 40_000), "auto-20240103": nil, "auto-20240104": noise,
		"other-20240104": noise, "zero.db": make([]byte, 100), "page.db": []byte("<html>404</html>"),
		"etcd-snapshot-x": nil, "sealed.db": []byte("age-encryption.org/v1\n"), "notes": []byte("Salted__12345678"),
		"cut.db.gz": half(packed(t, "gz", b)), "bad.db.xz": append(packed(t, "xz", b)[:40], noise...),
		"cut.zip": half(zipped(t, entry{"x.db", b})),
		"cut.tar": tarred(t, entry{"whole.db", b}, entry{"half.db", b})[:len(b)+6000],
	} {
		write(t, filepath.Join(dir, name), b)
	}
	f := find(t, locate.Options{}, dir)
	same(t, labels(f), "auto-20240101", "auto-20240102", "auto-20240103", "auto-20240104", "bad.db.xz", "cut.db.gz",
		"cut.tar", "half.db", "whole.db", "cut.zip",
		"etcd-snapshot-x", "page.db", "sealed.db", "zero.db")
	if len(f.Skipped) != 2 || filepath.Base(f.Skipped[0].Path) != "notes" ||
		filepath.Base(f.Skipped[1].Path) != "other-20240104" {
		t.Errorf("%+v", f.Skipped)
	}
	for _, it := range f.Items {
		switch it.Label {
		case "cut.tar", "cut.zip":
			var broken *locate.BrokenError
			if !errors.As(it.Err, &broken) {
				t.Errorf("%s: %v", it.Label, it.Err)
			}
		case "sealed.db":
			if it.Err == nil || !strings.Contains(it.Err.Error(), "unpack it first") {
				t.Errorf("%s: %v", it.Label, it.Err)
			}
		case "cut.db.gz", "bad.db.xz", "half.db":
			if _, packing := content(t, it); packing == nil {
				t.Errorf("%s: nothing said about its packing", it.Label)
			}
		}
	}
}

// TestLabels: names are as short as they can be, of their own, and stable.
func TestLabels(t *testing.T) {
	b := good(t)
	root := t.TempDir()
	for _, n := range []string{"a/x/etcd.db", "b/x/etcd.db", "b/y/etcd.db", "b/only.db"} {
		write(t, filepath.Join(root, n), b)
	}
	same(t, labels(find(t, locate.Options{}, root)), "a/x/etcd.db", "only.db", "b/x/etcd.db", "y/etcd.db")
	same(t, labels(find(t, locate.Options{}, filepath.Join(root, "a/x/etcd.db"), filepath.Join(root, "b/x/etcd.db"))),
		"a/x/etcd.db", "b/x/etcd.db")
	same(t, labels(find(t, locate.Options{}, "prod="+root)), "prod/a/x/etcd.db", "prod/b/only.db", "prod/b/x/etcd.db",
		"prod/b/y/etcd.db")
	same(t, labels(find(t, locate.Options{}, "one="+filepath.Join(root, "b/only.db"),
		"one="+filepath.Join(root, "a/x/etcd.db"))), "one", "one#2")
	// A folder and a file in it name one backup.
	f := find(t, locate.Options{}, filepath.Join(root, "b"), filepath.Join(root, "b/only.db"))
	same(t, labels(f), "only.db", "x/etcd.db", "y/etcd.db")
	if len(f.Skipped) != 1 {
		t.Errorf("%+v", f.Skipped)
	}
}

// TestLinksAndOddFiles: links are followed once, also in circles; pipes are not opened.
func TestLinksAndOddFiles(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "backups/monday.db"), good(t))
	write(t, filepath.Join(root, "elsewhere/tuesday.db"), good(t))
	for link, target := range map[string]string{"backups/latest.db": "monday.db", "backups/circle": "../backups",
		"backups/more": "../elsewhere", "backups/far.db": "../elsewhere/tuesday.db",
		"backups/gone.db": "nowhere", "backups/loop.db": "loop.db"} {
		ok(t, os.Symlink(target, filepath.Join(root, link)))
	}
	ok(t, syscall.Mkfifo(filepath.Join(root, "backups/pipe.db"), 0o600))
	f := find(t, locate.Options{}, filepath.Join(root, "backups"))
	same(t, labels(f), "monday.db", "tuesday.db")
	if len(f.Skipped) != 6 || reasonOf(f, "loop.db") != "a dangling link: EvalSymlinks: too many links" ||
		reasonOf(f, "gone.db") != "a dangling link: no such file or directory" {
		t.Errorf("%+v", f.Skipped)
	}
	f = find(t, locate.Options{}, filepath.Join(root, "backups/latest.db"), filepath.Join(root, "backups/pipe.db"))
	if len(f.Items) != 2 || f.Items[0].Err != nil || f.Items[1].Err == nil ||
		!strings.Contains(f.Items[1].Err.Error(), "neither a file nor a folder") {
		t.Errorf("%+v", f.Items)
	}
}

// TestNothingThere: what is missing, empty or of another kind is an item with an error, never nothing.
func TestNothingThere(t *testing.T) {
	root := t.TempDir()
	ok(t, os.Mkdir(filepath.Join(root, "empty"), 0o700))
	write(t, filepath.Join(root, "notes/readme.txt"), []byte("hello\n"))
	node := filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")
	f := find(t, locate.Options{}, filepath.Join(root, "empty"), filepath.Join(root, "notes"),
		filepath.Join(root, "missing.db"), node, "-")
	if len(f.Items) != 5 {
		t.Fatalf("%q", labels(f))
	}
	for _, it := range f.Items {
		if it.Err == nil || it.Label == "" {
			t.Errorf("%+v", it)
		}
	}
	for i, want := range []string{"there is no file in it", "1 file, none of them a backup"} {
		if err := f.Items[i].Err; !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// A data dir among backups is named and skipped.
	write(t, filepath.Join(root, "mixed/x.db"), good(t))
	ok(t, os.Symlink(node, filepath.Join(root, "mixed/node1")))
	f = find(t, locate.Options{}, filepath.Join(root, "mixed"))
	same(t, labels(f), "x.db")
	if len(f.Skipped) != 1 || !strings.Contains(f.Skipped[0].Reason, "data dir") {
		t.Errorf("%+v", f.Skipped)
	}
}

// TestStdin: what is piped in is a backup, packed or not.
func TestStdin(t *testing.T) {
	b := good(t)
	for name, in := range map[string][]byte{"plain": b, "gz": packed(t, "gz", b), "tar": tarred(t, entry{"x.db", b}),
		"zip": zipped(t, entry{"x.db", b})} {
		f := find(t, locate.Options{Stdin: bytes.NewReader(in)}, "-")
		if len(f.Items) != 1 {
			t.Fatalf("%s: %q", name, labels(f))
		}
		if got, packing := content(t, f.Items[0]); !bytes.Equal(got, b) || packing != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), packing)
		}
	}
	f := find(t, locate.Options{Stdin: strings.NewReader("")}, "in=-")
	same(t, labels(f), "in")
	if got, _ := content(t, f.Items[0]); len(got) != 0 || f.Items[0].Err != nil || !f.Items[0].Modified.IsZero() {
		t.Errorf("%+v", f.Items[0])
	}
}

func TestNewest(t *testing.T) {
	b := good(t)
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"a-20240101.db": 3, "a-20240102.db": 2, "a-20240103.db": 2,
		"b/b-1700000000": 5, "b/b-1700000099": 4} {
		write(t, filepath.Join(dir, name), b)
		at := time.Unix(1_700_000_000, 0).Add(-age * time.Hour)
		ok(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
	f := find(t, locate.Options{Newest: locate.NewestOfFolder}, dir)
	same(t, labels(f), "a-20240103.db")
	if f.Older != 4 {
		t.Errorf("%d older", f.Older)
	}
	f = find(t, locate.Options{Newest: locate.NewestOfSeries}, dir)
	same(t, labels(f), "a-20240103.db", "b-1700000099")
	young := locate.NewestOfEach(find(t, locate.Options{}, dir).Items)
	if len(young) != 2 {
		t.Errorf("%d newest of each", len(young))
	}
}

// TestBombs: what unpacks without end, or asks for much memory, is refused without filling disk or memory.
func TestBombs(t *testing.T) {
	dir := t.TempDir()
	head := packed(t, "xz", good(t))
	i := bytes.Index(head[12:], []byte{0x21, 0x01})
	head[12+i+2] = 40 // a dictionary of 4 GiB
	if i != 2 {
		t.Fatalf("the filter is at %d", i)
	}
	write(t, filepath.Join(dir, "greedy.db.xz"), head)
	f := find(t, locate.Options{}, dir)
	if _, packing := content(t, f.Items[0]); packing == nil || !strings.Contains(packing.Error(), "dictionary") {
		t.Errorf("%v", packing)
	}
}

// TestNoRoom: a backup that unpacks to more than the disk has room for is refused, says what to do, and leaves nothing
// in scratch; zeros take no room.
func TestNoRoom(t *testing.T) {
	const allowed = 300 << 10
	noise := make([]byte, allowed+1)
	for i := range noise {
		noise[i] = byte(i%251) | 1
	}
	locate.WithBudget(t, allowed)
	for name, b := range map[string][]byte{"x.db.zst": packed(t, "zst", noise), "x.db.xz": packed(t, "xz", noise),
		"x.zip": zipped(t, entry{"x.db", noise}), "x.tar.gz": packed(t, "gz", tarred(t, entry{"x.db", noise}))} {
		dir, to := t.TempDir(), t.TempDir()
		write(t, filepath.Join(dir, name), b)
		var room *scratch.RoomError
		for _, it := range find(t, locate.Options{}, filepath.Join(dir, name)).Items {
			if _, err := it.Open(t.Context(), to); !errors.As(err, &room) || room.Allowed != allowed ||
				!strings.Contains(err.Error(), "free some space") {
				t.Errorf("%s: %v, want a RoomError", name, err)
			}
		}
		if left, err := os.ReadDir(to); room == nil || err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
	piped := bytes.NewReader(noise)
	var room *scratch.RoomError
	if f := find(t, locate.Options{Stdin: piped}, "-"); len(f.Items) != 1 || !errors.As(f.Items[0].Err, &room) {
		t.Errorf("standard input: %+v", f.Items)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.db.zst"), packed(t, "zst", make([]byte, 4*allowed)))
	if b, packing := content(t, find(t, locate.Options{}, dir).Items[0]); packing != nil || len(b) != 4*allowed {
		t.Errorf("zeros: %d bytes, %v", len(b), packing)
	}
}

// TestUnpack: what is compressed or in an archive of backups becomes plain files; everything else is handed on as it
// is.
func TestUnpack(t *testing.T) {
	b := good(t)
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"a.db.gz": packed(t, "gz", b), "b.db.xz": packed(t, "xz", b), "c.db.zst": packed(t, "zst", b),
		"d.zip":    zipped(t, entry{"x/one.db", b}, entry{"two.db", b}),
		"e.tar.gz": packed(t, "gz", tarred(t, entry{"three.db", packed(t, "xz", b)})), "plain.db": b,
		"no.gz":       []byte("hello"),
		"dirs.tar.gz": packed(t, "gz", tarred(t, entry{"node1/member/snap/db", b})),
	} {
		write(t, filepath.Join(dir, name), content)
	}
	at := func(name string) evidence.Spec {
		return evidence.Spec{Name: "n-" + name, Where: filepath.Join(dir, name)}
	}
	for name, want := range map[string]int{"a.db.gz": 1, "b.db.xz": 1, "c.db.zst": 1, "d.zip": 2, "e.tar.gz": 1,
		"plain.db": 0, "no.gz": 0, "dirs.tar.gz": 0, "none": 0} {
		u, err := locate.Unpack(t.Context(), []evidence.Spec{at(name)}, locate.Options{Scratch: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if want == 0 {
			if len(u.Specs) != 1 || u.Specs[0] != at(name) {
				t.Errorf("%s: %+v, want it as it is", name, u.Specs)
			}
			continue
		}
		if len(u.Specs) != want {
			t.Errorf("%s: %+v, want %d files", name, u.Specs, want)
		}
		for _, s := range u.Specs {
			got, err := os.ReadFile(s.Where)
			if err != nil || !bytes.Equal(got, b) || !strings.HasPrefix(s.Name, "n-") || !strings.HasSuffix(s.Where, ".db") {
				t.Errorf("%s: %s has %d bytes (%v), want the backup's %d", name, s.Name, len(got), err, len(b))
			}
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string][]string{"": {"one.db", "two.db"},
		"old": {"old/two.db", "old/x/one.db"}} {
		u, err := locate.Unpack(t.Context(), []evidence.Spec{{Name: name, Where: filepath.Join(dir, "d.zip")}},
			locate.Options{Scratch: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range u.Specs {
			got = append(got, s.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("an archive named %q: %q, want %q", name, got, want)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
}
