//go:build e2e

package main_test

import (
	"path/filepath"
	"testing"
)

// TestE2ELabPrintsNothingToPaste: lab shows what it does and leaves no command to a reader, whatever its folder is
// called.
func TestE2ELabPrintsNothingToPaste(t *testing.T) {
	dir := filepath.Join(hostileFolder(t), "lab")
	out := printed(t, nil, "lab", "--story", "wiped", "--dir", dir)
	if found := prompts(out); len(found) > 0 {
		t.Errorf("lab prints the commands %q", found)
	}
}
