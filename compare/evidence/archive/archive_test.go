package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

var when = time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)

// segment is like a WAL segment: a little content, then preallocated zeros, with an odd end.
func segment() []byte {
	b := make([]byte, 8<<20+123)
	copy(b, "frame")
	copy(b[5<<20+10:], "later frame")
	return b
}

func tarOf(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, h := range entries {
		var body []byte
		if h.Typeflag == tar.TypeReg {
			body = segment()
			h.Size = int64(len(body))
		}
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func member(t *testing.T) []byte {
	return tarOf(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "node1/", Mode: 0o755, ModTime: when},
		tar.Header{Typeflag: tar.TypeDir, Name: "node1/wal/", Mode: 0o500, ModTime: when.Add(time.Hour)},
		tar.Header{Typeflag: tar.TypeReg, Name: "node1/wal/0.wal", Mode: 0o640, ModTime: when.Add(2 * time.Hour)},
	)
}

func write(t *testing.T, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func gz(t *testing.T, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zst(t *testing.T, b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func TestIsArchive(t *testing.T) {
	for name, want := range map[string]bool{
		"a.tar": true, "x/a.tar.gz": true, "A.TGZ": true, "a.tar.zst": true, "a.tzst": true,
		"a.db": false, "a.gz": false, "tar": false, ".tar": false, "a.tar.xz": false, "": false,
	} {
		if got := archive.IsArchive(name); got != want {
			t.Errorf("IsArchive(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestUnpackKeepsContentModesAndTimes(t *testing.T) {
	plain := member(t)
	for name, b := range map[string][]byte{"m.tar": plain, "m.tar.gz": gz(t, plain), "m.tar.zst": zst(t, plain),
		"misnamed.tar": gz(t, plain)} {
		t.Run(name, func(t *testing.T) {
			dest := filepath.Join(t.TempDir(), "scratch")
			if err := archive.Unpack(t.Context(), write(t, name, b), dest); err != nil {
				t.Fatal(err)
			}
			seg := filepath.Join(dest, "node1/wal/0.wal")
			got, err := os.ReadFile(seg)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, segment()) {
				t.Error("content differs")
			}
			wantStat(t, seg, 0o640, when.Add(2*time.Hour))
			wantStat(t, filepath.Join(dest, "node1/wal"), 0o700, when.Add(time.Hour))
			wantStat(t, filepath.Join(dest, "node1"), 0o755, when)
			var st syscall.Stat_t
			if err := syscall.Stat(seg, &st); err != nil {
				t.Fatal(err)
			}
			if st.Blocks*512 > 1<<20 {
				t.Errorf("%d bytes on disk: zeros were written out", st.Blocks*512)
			}
		})
	}
}

func wantStat(t *testing.T, name string, mode os.FileMode, mtime time.Time) {
	t.Helper()
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != mode || !st.ModTime().Equal(mtime) {
		t.Errorf("%s: %v %v, want %v %v", name, st.Mode().Perm(), st.ModTime().UTC(), mode, mtime)
	}
}

func TestUnpackRefuses(t *testing.T) {
	reg := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600} }
	for name, tc := range map[string]struct {
		entries []tar.Header
		want    string
	}{
		"parent":        {[]tar.Header{reg("../evil")}, "outside"},
		"hidden parent": {[]tar.Header{reg("a/../../evil")}, "outside"},
		"absolute":      {[]tar.Header{reg("/evil")}, "outside"},
		"symlink": {[]tar.Header{{Typeflag: tar.TypeSymlink, Name: "a", Linkname: ".."}, reg("a/evil")},
			"symbolic link"},
		"link out": {[]tar.Header{{Typeflag: tar.TypeLink, Name: "a", Linkname: "../evil"}},
			"outside the archive"},
		"link nowhere":  {[]tar.Header{{Typeflag: tar.TypeLink, Name: "a", Linkname: "b"}}, "not an earlier file of the archive"},
		"device":        {[]tar.Header{{Typeflag: tar.TypeBlock, Name: "sda"}}, "neither a file nor a directory"},
		"fifo":          {[]tar.Header{{Typeflag: tar.TypeFifo, Name: "pipe"}}, "neither a file nor a directory"},
		"twice":         {[]tar.Header{reg("a"), reg("a")}, "already unpacked"},
		"dir over file": {[]tar.Header{reg("a"), reg("a/b")}, "a"},
		"nothing in it": {nil, "has no entry"},
	} {
		t.Run(name, func(t *testing.T) {
			up := t.TempDir()
			err := archive.Unpack(t.Context(), write(t, "x.tar", tarOf(t, tc.entries...)), filepath.Join(up, "in"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if _, err := os.Lstat(filepath.Join(up, "evil")); err == nil {
				t.Error("something was written outside the destination")
			}
		})
	}
}

func TestUnpackHardLink(t *testing.T) {
	b := tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a/db", Mode: 0o600},
		tar.Header{Typeflag: tar.TypeLink, Name: "b/db", Linkname: "a/db"})
	dest := t.TempDir()
	if err := archive.Unpack(t.Context(), write(t, "x.tar", b), dest); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dest, "b/db"))
	if err != nil || !bytes.Equal(got, segment()) {
		t.Errorf("linked file: %d bytes, %v", len(got), err)
	}
}

func TestUnpackLimits(t *testing.T) {
	file := write(t, "x.tar", member(t))
	var lim *archive.LimitError
	err := archive.UnpackWithin(t.Context(), file, t.TempDir(), int64(len(segment()))-1, 0)
	if !errors.As(err, &lim) || lim.What != "bytes" || lim.Name != "node1/wal/0.wal" {
		t.Errorf("bytes: %v", err)
	}
	if err := archive.UnpackWithin(t.Context(), file, t.TempDir(), int64(len(segment())), 0); err != nil {
		t.Errorf("just enough: %v", err)
	}
	err = archive.UnpackWithin(t.Context(), file, t.TempDir(), 0, 2)
	if !errors.As(err, &lim) || lim.What != "entries" {
		t.Errorf("entries: %v", err)
	}
}

// TestUnpackAbsurdSize has a header that claims 8 EiB, as a hostile or damaged archive can.
// TestUnpackRoom: what is written is bounded, whatever the sizes in the archive say. Zeros take no room.
func TestUnpackRoom(t *testing.T) {
	for _, name := range []string{"x.tar", "x.tar.gz", "x.tar.zst"} {
		b := member(t)
		switch filepath.Ext(name) {
		case ".gz":
			b = gz(t, b)
		case ".zst":
			b = zst(t, b)
		}
		file := write(t, name, b)
		var room *scratch.RoomError
		err := archive.UnpackInto(t.Context(), file, t.TempDir(), 1)
		if !errors.As(err, &room) || room.Allowed != 1 || !strings.Contains(err.Error(), "free some space") {
			t.Errorf("%s: %v, want a RoomError", name, err)
		}
		dest := t.TempDir()
		if err := archive.UnpackInto(t.Context(), file, dest, 1<<20); err != nil {
			t.Errorf("%s holds %d bytes, most of them zeros: %v", name, len(segment()), err)
		}
		if st, err := os.Stat(filepath.Join(dest, "node1", "wal", "0.wal")); err != nil ||
			st.Size() != int64(len(segment())) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnpackAbsurdSize(t *testing.T) {
	b := tarOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "d/"})
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "big", Size: 1<<63 - 1,
		Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	var lim *archive.LimitError
	err := archive.Unpack(t.Context(), write(t, "x.tar", append(out.Bytes(), b...)), t.TempDir())
	if !errors.As(err, &lim) {
		t.Errorf("got %v, want a LimitError", err)
	}
}

// TestUnpackEveryCut cuts small archives at many places: each cut is either reported, or (within the closing zero
// blocks) harmless.
func TestUnpackEveryCut(t *testing.T) {
	plain := tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o600})
	end := len(plain) - 1024
	end -= (512 - len(segment())%512) % 512 // padding after the last file
	for _, cut := range []int{0, 1, 3, 100, 511, 512, 513, 4096, end - 1} {
		if err := archive.Unpack(t.Context(), write(t, "x.tar", plain[:cut]), t.TempDir()); err == nil {
			t.Errorf("tar cut at %d of %d: no error", cut, len(plain))
		}
	}
	for name, b := range map[string][]byte{"x.tar.gz": gz(t, plain), "x.tar.zst": zst(t, plain)} {
		for _, cut := range []int{1, 5, 12, len(b) / 2, len(b) - 9} {
			err := archive.Unpack(t.Context(), write(t, name, b[:cut]), t.TempDir())
			if err == nil {
				t.Errorf("%s cut at %d of %d: no error", name, cut, len(b))
			}
		}
	}
}

func TestUnpackStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := archive.Unpack(ctx, write(t, "x.tar", member(t)), t.TempDir())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWriteSparseReportsTheSourcesError(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	src := io.MultiReader(strings.NewReader("abc"), failing{})
	n, err := archive.WriteSparse(t.Context(), f, src)
	if n != 3 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d, %v; want 3 and the source's own error", n, err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestUnpackEndsAnywhere: wherever the caller gives up, the error is that of the context.
func TestUnpackEndsAnywhere(t *testing.T) {
	from := write(t, "x.tar.gz", gz(t, member(t)))
	ctx := ctxtest.EndingAfter(1 << 40)
	if err := archive.Unpack(ctx, from, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for n := range 1<<40 - ctx.Left() {
		if err := archive.Unpack(ctxtest.EndingAfter(n), from, t.TempDir()); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d: %v", n, err)
		}
	}
}

// TestUnpackComments: a header for later entries is no entry itself.
func TestUnpackComments(t *testing.T) {
	comment := tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header",
		PAXRecords: map[string]string{"comment": "made by hand"}}
	dir := t.TempDir()
	file := tar.Header{Typeflag: tar.TypeReg, Name: "f", Mode: 0o600, ModTime: when}
	if err := archive.Unpack(t.Context(), write(t, "x.tar", tarOf(t, comment, file)), dir); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "f" {
		t.Errorf("%v, %v", entries, err)
	}
	err = archive.Unpack(t.Context(), write(t, "x.tar", tarOf(t, comment)), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "the archive has no entry") {
		t.Errorf("only a comment: %v", err)
	}
}

// TestUnpackTrailer: a little may follow the end of an archive, such as tar's padding.
func TestUnpackTrailer(t *testing.T) {
	whole := member(t)
	for more, want := range map[int]bool{0: true, 1 << 20: true, 1<<20 + 1: false} {
		from := write(t, "x.tar", slices.Concat(whole, make([]byte, more)))
		err := archive.Unpack(t.Context(), from, t.TempDir())
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "follow the end-of-archive mark") {
			t.Errorf("%d bytes after it: %v", more, err)
		}
	}
}

// TestUnpackInto: the destination must be a folder.
func TestUnpackInto(t *testing.T) {
	file := write(t, "f", []byte("x"))
	for _, dest := range []string{file, filepath.Join(file, "below")} {
		if err := archive.Unpack(t.Context(), write(t, "x.tar", member(t)), dest); err == nil {
			t.Errorf("unpacked into %s", dest)
		}
	}
	if err := archive.Unpack(t.Context(), file+"-", t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no archive: %v", err)
	}
}

// TestWriteSparseKeepsContent: whatever blocks are zero, the file has the bytes and the length of the source.
func TestWriteSparseKeepsContent(t *testing.T) {
	const block = 4096
	for _, blocks := range []string{"", "x", "0", "xx", "x0x", "00xx0", "xxx0", "0xx00xx", "x0xxt", "0t", "t"} {
		var want []byte
		for _, b := range blocks {
			switch b {
			case '0':
				want = append(want, make([]byte, block)...)
			case 'x':
				want = append(want, bytes.Repeat([]byte{7}, block)...)
			case 't': // a part of a block
				want = append(want, 0, 1, 2)
			}
		}
		name := filepath.Join(t.TempDir(), "f")
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := archive.WriteSparse(t.Context(), f, bytes.NewReader(want))
		if err != nil || n != int64(len(want)) {
			t.Errorf("%s: %d of %d bytes, %v", blocks, n, len(want), err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes, %v", blocks, err)
		}
	}
}
