package evidencetest

import (
	"os"
	"path/filepath"
	"testing"
)

// DiskDir returns a folder below the current one, which is removed after the test: the folder for temporary files can
// be in memory, the folder of the sources is not.
func DiskDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(".", "spill-test-")
	if err != nil {
		tb.Fatal(err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}
