package repair

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// doBackup streams the best member's snapshot to a new file and checks the digest that the server put behind it.
func doBackup(ctx context.Context, r *runner, _ *Step) (string, error) {
	if _, err := os.Stat(r.backup); err == nil {
		return filepath.Base(r.backup) + " is there already", nil // it gets its name only when it is complete
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	c, _, err := r.host.client(r.best())
	if err != nil {
		return "", err
	}
	partial := r.backup + ".partial"
	size, err := saveSnapshot(ctx, c, partial)
	if err != nil {
		return "", err
	}
	if err := os.Rename(partial, r.backup); err != nil {
		return "", err
	}
	r.out.Bytes = max(r.out.Bytes, size)
	return fmt.Sprintf("%s, %d bytes, its sha256 trailer fits", filepath.Base(r.backup), size), syncDir(filepath.Dir(r.backup))
}

func saveSnapshot(ctx context.Context, c *clientv3.Client, path string) (size int64, err error) {
	in, err := c.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }() // only read
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := &tail{h: sha256.New()}
	if size, err = io.Copy(io.MultiWriter(f, t), in); err != nil {
		return size, err
	}
	if !t.fits() {
		return size, fmt.Errorf("the snapshot of %d bytes came without a sha256 that fits it: it was cut short", size)
	}
	return size, f.Sync()
}

// tail hashes everything but the last 32 bytes, which it keeps.
type tail struct {
	h interface {
		io.Writer
		Sum([]byte) []byte
	}
	last []byte
}

// Write hashes what is certainly not the trailer.
func (t *tail) Write(b []byte) (int, error) {
	t.last = append(t.last, b...)
	if n := len(t.last) - sha256.Size; n > 0 {
		_, _ = t.h.Write(t.last[:n]) // a hash never fails to write
		t.last = append(t.last[:0], t.last[n:]...)
	}
	return len(b), nil
}

func (t *tail) fits() bool {
	return len(t.last) == sha256.Size && string(t.h.Sum(nil)) == string(t.last)
}
