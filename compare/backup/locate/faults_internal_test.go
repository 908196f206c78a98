package locate

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// errDisk is what a failing disk returns.
var errDisk = errors.New("the disk fails")

// searcher returns a finder of an argument without anything found yet.
func searcher(t *testing.T) *finder {
	t.Helper()
	return &finder{ctx: t.Context(), found: &Found{}, given: evidence.Spec{Where: "given", Name: "name"},
		dirs: map[string]bool{}, files: map[string]string{}}
}

// TestGoneWhileSearched: a file or folder that is gone or replaced once its turn comes is an error, not a missing
// backup. Only lost+found, which root alone reads, is skipped.
func TestGoneWhileSearched(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"file", "lost+found"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none := filepath.Join(dir, "none")
	for name, c := range map[string]struct {
		do   func(f *finder)
		want error
	}{
		"a folder that is gone": {func(f *finder) { f.walk(none, "shown", 0) }, fs.ErrNotExist},
		"a folder that is a file": {func(f *finder) { f.walk(filepath.Join(dir, "file"), "shown", 0) },
			syscall.ENOTDIR},
		"a file that is gone": {func(f *finder) { f.file(none, "shown", false) }, fs.ErrNotExist},
		"content that is gone": {func(f *finder) { f.content(&Item{Shown: "shown", path: none}, true) },
			fs.ErrNotExist},
		"a head that cannot be read": {func(f *finder) { f.unreadableHead(&Item{Shown: "shown"}, errDisk, false) },
			errDisk},
	} {
		f := searcher(t)
		c.do(f)
		if len(f.items) != 1 || f.items[0].Shown != "shown" || !errors.Is(f.items[0].Err, c.want) ||
			len(f.found.Skipped)+len(f.candidates) > 0 {
			t.Errorf("%s: %+v, skipped %v", name, f.items, f.found.Skipped)
		}
	}
	f := searcher(t)
	f.walk(filepath.Join(dir, "lost+found"), "shown/lost+found", 1)
	if len(f.items) > 0 || len(f.found.Skipped) != 1 || f.found.Skipped[0].Reason != "a folder of the file system" {
		t.Errorf("lost+found: %+v, %+v", f.items, f.found.Skipped)
	}
}

// TestFoldersByTheirRealPath: a folder that is reached twice, by a relative and by an absolute path, is searched once.
func TestFoldersByTheirRealPath(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs("d")
	if err != nil {
		t.Fatal(err)
	}
	f := searcher(t)
	f.walk("d", "one", 0)
	f.walk(abs, "two", 0)
	if len(f.found.Skipped) != 1 || f.found.Skipped[0].Path != "two" || len(f.items) > 0 {
		t.Errorf("%+v", f.found.Skipped)
	}
}

// TestUnpackedFilesFail: a disk that fails while a backup is unpacked is an error with what was written, and no
// existing file is overwritten.
func TestUnpackedFilesFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(t.Context(), path, strings.NewReader("new")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // only read
	if n, err := copySparse(t.Context(), in, strings.NewReader("new")); err == nil || n != 0 {
		t.Errorf("a file that cannot be written to: %d bytes, %v", n, err)
	}
	to := filepath.Join(t.TempDir(), "y")
	failing := io.MultiReader(bytes.NewReader(bytes.Repeat([]byte{1}, copyBuffer+5)), iotest.ErrReader(errDisk))
	if err := writeFile(t.Context(), to, failing); !errors.Is(err, errDisk) {
		t.Errorf("a source that cannot be read: %v", err)
	}
	if st, err := os.Stat(to); err != nil || st.Size() != copyBuffer+5 {
		t.Errorf("%v, %v", st.Size(), err)
	}
}

// TestHeadsThatFail: an error of the file is returned as it is, with or without compression around it.
func TestHeadsThatFail(t *testing.T) {
	for name, magic := range map[string]string{"plain": "", "xz": "\xfd7zXZ\x00", "gzip": "\x1f\x8b\x08\x00\x00\x00"} {
		u, err := unwrap(io.MultiReader(strings.NewReader(magic), iotest.ErrReader(errDisk)))
		if u != nil || !errors.Is(err, errDisk) || errors.Is(err, errPacking) != (magic != "") {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}
