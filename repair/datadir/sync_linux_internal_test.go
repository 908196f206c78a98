package datadir

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestSyncFails: what cannot be synced is an error that names it.
func TestSyncFails(t *testing.T) {
	if err := syncDirs(t.TempDir(), os.DevNull); !errors.Is(err, syscall.EINVAL) ||
		!strings.HasPrefix(err.Error(), "syncing "+os.DevNull) {
		t.Error(err)
	}
}
