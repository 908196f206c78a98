package copies_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/copies"
)

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestFolder: regular files are copied, those behind symlinks too; unfinished files, folders and dead links are not.
func TestFolder(t *testing.T) {
	src, dst := t.TempDir(), filepath.Join(t.TempDir(), "a", "b")
	for name, content := range map[string]string{"0.wal": "log", "1.tmp": "unfinished", "empty": ""} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(src, "folder"), 0o700),
		os.Symlink(filepath.Join(src, "0.wal"), filepath.Join(src, "link")),
		os.Symlink(filepath.Join(src, "none"), filepath.Join(src, "dead"))); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, src)
	if err := copies.Folder(t.Context(), src, dst); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"0.wal", "empty", "link"}, names(t, dst)); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"0.wal", "link"} {
		if b, err := os.ReadFile(filepath.Join(dst, name)); err != nil || string(b) != "log" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if err := copies.Folder(t.Context(), src, dst); !errors.Is(err, os.ErrExist) {
		t.Errorf("over the first copy: %v", err)
	}
	if err := copies.Folder(t.Context(), filepath.Join(src, "none"), dst); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no folder: %v", err)
	}
	if err := copies.Folder(t.Context(), src, filepath.Join(src, "0.wal", "x")); err == nil {
		t.Error("below a file")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := copies.Folder(ended, src, filepath.Join(t.TempDir(), "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestDataDir: parts that a source lacks are not made, and a data dir that exists is left alone.
func TestDataDir(t *testing.T) {
	wal := filepath.Join(evidencetest.Incident(t, "a-auth-revision-replay"), "node1", "member", "wal")
	m := open(t, evidence.Spec{Where: wal}).Members[0]
	dst := filepath.Join(t.TempDir(), "a", "b")
	if err := copies.DataDir(t.Context(), m, dst); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"wal"}, names(t, filepath.Join(dst, "member"))); d != "" {
		t.Error(d)
	}
	if got := names(t, filepath.Join(dst, "member", "wal")); !slices.Contains(got, "0000000000000000-0000000000000000.wal") {
		t.Errorf("%q", got)
	}
	if err := copies.DataDir(t.Context(), m, dst); !errors.Is(err, os.ErrExist) {
		t.Errorf("over the first copy: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := copies.DataDir(ended, m, filepath.Join(t.TempDir(), "x")); !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "copying "+m.Label()) {
		t.Errorf("after the end: %v", err)
	}
}

// TestProgressAndSize: each copy is announced, and a source that went away has no size.
func TestProgressAndSize(t *testing.T) {
	dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "a-auth-revision-replay"), "node1"))
	c, err := copies.Of(t.Context(), open(t, evidence.Spec{Name: "first", Where: dir}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Present != 1 || c.Voters != 3 || c.Quorum() != 2 {
		t.Errorf("%d of %d voters, quorum %d", c.Present, c.Voters, c.Quorum())
	}
	var said []string
	out := filepath.Join(t.TempDir(), "out")
	if err := c.Make(t.Context(), out, func(s string) { said = append(said, s) }); err != nil ||
		!slices.Equal(said, []string{"copying first"}) || c.Members[0].Config.DataDir != filepath.Join(out, "1") {
		t.Errorf("%q, %+v, %v", said, c.Members[0].Config, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "member", "snap")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Bytes(); err == nil {
		t.Errorf("%d bytes of a folder that is gone", n)
	}
	if err := c.Make(t.Context(), filepath.Join(t.TempDir(), "out"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a copy of a folder that is gone: %v", err)
	}
	for voters, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3} {
		if got := (&copies.Cluster{Voters: voters}).Quorum(); got != want {
			t.Errorf("quorum of %d: %d", voters, got)
		}
	}
}
