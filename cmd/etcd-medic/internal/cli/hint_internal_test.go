package cli

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// TestHintOfPermissions: a folder that cannot be made is an output, since sources are only read.
func TestHintOfPermissions(t *testing.T) {
	for op, want := range map[string]string{"open": "copy the data dir", "mkdir": "name an output in a folder"} {
		err := fmt.Errorf("above: %w", &fs.PathError{Op: op, Path: "p", Err: fs.ErrPermission})
		if hint := hintOf(err); !strings.HasPrefix(hint, want) {
			t.Errorf("%s: %q, want %q", op, hint, want)
		}
	}
}
