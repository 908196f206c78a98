package node

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHasLog: a data dir was used if its log has a segment, wherever both are.
func TestHasLog(t *testing.T) {
	root := filepath.Join(t.TempDir(), "[of] a cluster")
	used, elsewhere := filepath.Join(root, "used"), filepath.Join(root, "wal*")
	for _, path := range []string{filepath.Join(used, "member", "wal", "0.wal"), filepath.Join(elsewhere, "0.wal"),
		filepath.Join(root, "new", "member", "wal", "0.tmp")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir, wal string
		want     bool
	}{{used, "", true}, {filepath.Join(root, "new"), "", false}, {filepath.Join(root, "none"), "", false},
		{root, elsewhere, true}, {used, root, false}, {used, used, false}} {
		if m := (&Member{config: MemberConfig{DataDir: c.dir, WALDir: c.wal}}); m.hasLog() != c.want {
			t.Errorf("%+v: %t", c, m.hasLog())
		}
	}
}
