package regular_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// TestOpenNeverWaits opens everything that is not a file, and links to it.
func TestOpenNeverWaits(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for path, what := range map[string]string{pipe: "a named pipe", socket: "a socket", "/dev/zero": "a device",
		dir: "a folder"} {
		link := filepath.Join(dir, "link-"+filepath.Base(path))
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, link} {
			done := make(chan error, 1)
			go func() {
				_, _, err := regular.Open(p)
				done <- err
			}()
			select {
			case err := <-done:
				var not *regular.NotRegularError
				var pe *fs.PathError
				if !errors.As(err, &not) || not.What != what || !errors.As(err, &pe) {
					t.Errorf("%s: %v, want %s", p, err, what)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: the open waits", p)
			}
		}
	}
	if _, _, err := regular.Open(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := regular.ReadFile(path, 7); err != nil || string(b) != "content" {
		t.Errorf("%q, %v", b, err)
	}
	var large *regular.TooLargeError
	if _, err := regular.ReadFile(path, 6); !errors.As(err, &large) || !strings.Contains(err.Error(), "7 bytes") {
		t.Errorf("over the limit: %v", err)
	}
	f, size, err := regular.Open(path)
	if err != nil || size != 7 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
