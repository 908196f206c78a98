//go:build unix

package run

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAbsolute: a path is made absolute; in a folder that was removed it stays as it is.
func TestAbsolute(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	folders(t, dir)
	t.Chdir(dir)
	if got := absolute("out"); got != filepath.Join(dir, "out") {
		t.Error(got)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if got := absolute("out"); got != "out" {
		t.Error(got)
	}
}
