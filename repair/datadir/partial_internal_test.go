package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// makeFile makes a file with its folders and returns its path.
func makeFile(t *testing.T, path string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600))
	return path
}

// deepDir is a folder in which one, deeper down, has a path that is too long for any call.
func deepDir(t *testing.T) string {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	must(t, root.MkdirAll(strings.Repeat(strings.Repeat("d", 250)+"/", 17), 0o700), root.Close())
	return root.Name()
}

// TestNoPartialDir: where no folder can be made, the error says so.
func TestNoPartialDir(t *testing.T) {
	dir := t.TempDir()
	file := makeFile(t, filepath.Join(dir, "file"))
	must(t, os.Symlink(filepath.Join(dir, "none", "x"), filepath.Join(dir, "broken")))
	for name, c := range map[string]struct {
		final string
		want  error
	}{
		"below a file":        {filepath.Join(file, "new"), syscall.ENOTDIR},
		"below a broken link": {filepath.Join(dir, "broken", "new"), syscall.EEXIST},
		"a long name":         {filepath.Join(dir, strings.Repeat("n", 250)), syscall.ENAMETOOLONG},
	} {
		if p, err := newPartialDir(c.final); p != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if err := absent(filepath.Join(file, "new")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a path that cannot be: %v", err)
	}
}

// TestNoMark: a folder that another run has taken is busy, and any other error of the mark is that error.
func TestNoMark(t *testing.T) {
	dir := t.TempDir()
	makeFile(t, filepath.Join(dir, "taken", partialMark))
	for _, name := range []string{"gone", "taken"} {
		var busy *refusal.Error
		p := &partialDir{final: filepath.Join(dir, "new"), path: filepath.Join(dir, name)}
		if err := p.lockMark(); !errors.As(err, &busy) || p.mark != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := &partialDir{path: makeFile(t, filepath.Join(dir, "file"))}
	if err := p.lockMark(); !errors.Is(err, syscall.ENOTDIR) || p.mark != nil {
		t.Errorf("a file: %v", err)
	}
}

// TestNotTaken: a left-over folder is only taken if its mark can be read and removed.
func TestNotTaken(t *testing.T) {
	dir := t.TempDir()
	link, folder := filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	must(t, os.Mkdir(link, 0o700), os.Symlink(partialMark, filepath.Join(link, partialMark)))
	makeFile(t, filepath.Join(folder, partialMark, "file"))
	if f, err := takeLeftOver(&partialDir{path: link}); f != nil || !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a mark that cannot be opened: %v, %v", f, err)
	}
	var busy *refusal.Error
	p := &partialDir{path: folder, final: "new"}
	if f, err := takeLeftOver(p); f != nil || !errors.As(err, &busy) ||
		!strings.Contains(err.Error(), "another etcd-medic is writing new") {
		t.Errorf("a mark that cannot be removed: %v, %v", f, err)
	}
	other := errors.New("in the way")
	was, err := os.Stat(dir)
	must(t, err)
	for name, want := range map[string]bool{"folder": true, "gone": true, ".": false} {
		p := &partialDir{path: filepath.Join(dir, name)}
		if err := p.removeUnmarked(was, other); errors.As(err, &busy) != want || errors.Is(err, other) == want {
			t.Errorf("%s without a mark before: %v", name, err)
		}
	}
	if err := removeMarked(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	must(t, os.Mkdir(filepath.Join(dir, "unmarked"), 0o700))
	if err := removeMarked(filepath.Join(dir, "unmarked")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no mark: %v", err)
	}
	if err := ignoreAbsent(fs.ErrNotExist); err != nil {
		t.Errorf("what is gone is an error: %v", err)
	}
	if err := ignoreAbsent(fs.ErrPermission); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("what is not allowed is none: %v", err)
	}
}

// TestNotCommitted: a folder or file that cannot get its final name is an error, and does not count as done.
func TestNotCommitted(t *testing.T) {
	dir := t.TempDir()
	makeFile(t, filepath.Join(dir, "marked", partialMark))
	must(t, os.Mkdir(filepath.Join(dir, "unmarked"), 0o700))
	for _, c := range []struct{ path, final string }{
		{"none", "new"}, {"unmarked", "new"}, {"marked", "none/new"},
	} {
		p := &partialDir{path: filepath.Join(dir, c.path), final: filepath.Join(dir, c.final)}
		if err := p.commit(); !errors.Is(err, fs.ErrNotExist) || p.done {
			t.Errorf("%s to %s: %v, done %v", c.path, c.final, err, p.done)
		}
		if _, err := os.Lstat(p.final); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s to %s: it is there (%v)", c.path, c.final, err)
		}
	}
	p := &partialDir{path: filepath.Join(dir, "unmarked"), final: filepath.Join(dir, "new")}
	if err := p.commitFile("none"); !errors.Is(err, fs.ErrNotExist) || p.done {
		t.Errorf("no such file: %v, done %v", err, p.done)
	}
}

// TestInstall: a file gets a name that is free, also where there are no hard links (as of a folder), and never one
// that is taken.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	one, two := makeFile(t, at("one")), makeFile(t, at("two"))
	if err := install(one, two); !errors.Is(err, ErrExists) {
		t.Errorf("over another file: %v", err)
	}
	must(t, os.Mkdir(at("folder"), 0o700))
	for from, to := range map[string]string{one: at("new"), at("folder"): at("moved")} {
		_, err := os.Lstat(from)
		must(t, err, install(from, to))
		if _, err := os.Lstat(from); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", from, err)
		}
		if _, err := os.Lstat(to); err != nil {
			t.Error(err)
		}
	}
	if err := writeFile(two, bytesTo([]byte("y"))); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file is written again: %v", err)
	}
	if err := mkdirs(at("fresh"), at("moved")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder is made again: %v", err)
	}
}

// TestNotSynced: folders that cannot be opened or synced are not passed over.
func TestNotSynced(t *testing.T) {
	deep := deepDir(t)
	for name, sync := range map[string]func() error{
		"of many":  func() error { return syncDirs(t.TempDir(), deep+"/none") },
		"a tree":   func() error { return syncTree(deep + "/none") },
		"a result": func() error { return (&Building{Path: deep + "/none"}).Commit() },
	} {
		if err := sync(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := syncTree(deep); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a folder in the tree: %v", err)
	}
}

// TestOutsideOfNoFolder: a path whose folders cannot be found is refused, and never taken to be outside.
func TestOutsideOfNoFolder(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	if err := Outside(filepath.Join(dir, "loop", "new"), evidence.Spec{Where: dir}); err == nil ||
		!strings.Contains(err.Error(), filepath.Join(dir, "loop")) {
		t.Errorf("a link to itself: %v", err)
	}
	gone := filepath.Join(dir, "gone")
	must(t, os.Mkdir(gone, 0o700))
	t.Chdir(gone)
	must(t, os.Remove(gone))
	if err := Outside("new", evidence.Spec{Where: dir}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is gone: %v", err)
	}
	if got := whole("member/snap/db"); got != "member/snap/db" {
		t.Errorf("a path in a folder that is gone is taken for %s", got)
	}
}
