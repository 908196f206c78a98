package plan

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFullDisk: a file that cannot be written whole is an error, and is removed; so is the signature that was written
// for it.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	single, both := writeNew(one, make([]byte, 5000)), writeBoth(one, make([]byte, 5000), two, make([]byte, 10))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{single, both} {
		if !errors.Is(err, syscall.EFBIG) {
			t.Error(err)
		}
	}
	for _, path := range []string{one, two} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left (%v)", path, err)
		}
	}
	if err := writeBoth(one, make([]byte, 5000), two, make([]byte, 10)); err != nil {
		t.Error(err)
	}
}
