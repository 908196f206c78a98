package folder

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestMatch: names match, whatever the folder is called. What is not a folder has no entries.
func TestMatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `[a]*?\`)
	if err := os.MkdirAll(filepath.Join(dir, "x.wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.wal", "a.wal", "a.snap", "[", "a.wal.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir, pattern string
		want         []string
		err          error
	}{
		"in order":      {dir, "*.wal", []string{"a.wal", "b.wal", "x.wal"}, nil},
		"none":          {dir, "*.db", nil, nil},
		"escaped":       {dir, `\[`, []string{"["}, nil},
		"a bad pattern": {dir, "[", nil, filepath.ErrBadPattern},
		"no folder":     {filepath.Join(dir, "not"), "*", nil, nil},
		"a file":        {filepath.Join(dir, "a.snap"), "*", nil, nil},
		"below a file":  {filepath.Join(dir, "a.snap", "b"), "*", nil, syscall.ENOTDIR},
		"a pipe":        {pipe, "*", nil, nil},
		"a long name":   {filepath.Join(dir, string(make([]byte, 300))), "*", nil, syscall.EINVAL},
	} {
		got, err := Match(c.dir, c.pattern)
		for i := range got {
			got[i] = filepath.Base(got[i])
		}
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
