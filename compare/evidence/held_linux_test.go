package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHeldBy: a lock on the database or on a segment of the log shows, however the source is given.
func TestHeldBy(t *testing.T) {
	root := filepath.Join(t.TempDir(), "[of] a cluster")
	dir := filepath.Join(root, "node")
	db, segment := filepath.Join(dir, "member", "snap", "db"), filepath.Join(dir, "member", "wal", "0.wal")
	wal := filepath.Dir(segment)
	elsewhere, bare := filepath.Join(root, "wal"), filepath.Join(root, "bare")
	for _, path := range []string{db, segment, filepath.Join(bare, "wal", "0.wal"),
		filepath.Join(wal, "0.tmp"), filepath.Join(elsewhere, "0.wal")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		lock string
		spec Spec
		want string
	}{
		"database, by its dir":     {db, Spec{Where: dir}, "db"},
		"database, by member":      {db, Spec{Where: filepath.Join(dir, "member")}, "db"},
		"database, by its file":    {db, Spec{Where: db}, "db"},
		"segment, by its dir":      {segment, Spec{Where: dir}, "0.wal"},
		"segment, by member":       {segment, Spec{Where: filepath.Join(dir, "member")}, "0.wal"},
		"segment, by its folder":   {segment, Spec{Where: wal}, "0.wal"},
		"segment in another place": {filepath.Join(elsewhere, "0.wal"), Spec{Where: dir, WALDir: elsewhere}, "0.wal"},
		"of a database file": {filepath.Join(elsewhere, "0.wal"), Spec{Where: db, WALDir: elsewhere},
			"0.wal"},
		"segment, without a database": {filepath.Join(bare, "wal", "0.wal"), Spec{Where: bare}, "0.wal"},
		"log of another place":        {segment, Spec{Where: dir, WALDir: elsewhere}, ""},
		"a segment being made":        {filepath.Join(wal, "0.tmp"), Spec{Where: dir}, ""},
		"a file that is no such":      {segment, Spec{Where: db}, ""},
		"nothing there":               {segment, Spec{Where: filepath.Join(root, "none")}, ""},
	} {
		f, err := os.OpenFile(c.lock, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		lock := &unix.Flock_t{Type: unix.F_WRLCK} // of the open file: the locks of this process do not count
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, lock); err != nil {
			t.Fatal(err)
		}
		got := HeldBy(c.spec)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if (got == "") != (c.want == "") || !strings.HasSuffix(got, c.want) ||
			c.want != "" && !strings.Contains(got, "has locked "+c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := HeldBy(Spec{Where: dir}); got != "" {
		t.Errorf("after all: %q", got)
	}
}
