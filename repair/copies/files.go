package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// logRoom is the space that a server preallocates for its log: the current segment and the next one.
const logRoom = 128 << 20

// Bytes returns the maximum size of the copies: the sources' logs, snapshots and databases, and the logs that the
// servers write.
func (c *Cluster) Bytes() (n int64, err error) {
	for i := range c.Members {
		p := c.Members[i].Source.Source.Parts()
		for _, dir := range []string{p.WAL, p.Snap} {
			if dir == "" {
				continue
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				return 0, err
			}
			for _, e := range entries {
				if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
					n += st.Size()
				}
			}
		}
		n += logRoom
	}
	return n, nil
}

// Make copies every source to a separate data dir below dir, which it creates.
func (c *Cluster) Make(ctx context.Context, dir string, progress func(string)) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i := range c.Members {
		m := &c.Members[i]
		if progress != nil {
			progress("copying " + m.Source.Label())
		}
		m.Config.DataDir = filepath.Join(dir, fmt.Sprintf("%d", i+1))
		if err := DataDir(ctx, m.Source, m.Config.DataDir); err != nil {
			return err
		}
	}
	return nil
}

// DataDir creates a data dir from a source's parts in dst, which must not exist: member/wal and member/snap, wherever
// the source has its WAL.
func DataDir(ctx context.Context, m *evidence.Member, dst string) error {
	if err := os.MkdirAll(filepath.Dir(dst), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dst, 0o700); err != nil {
		return err
	}
	p := m.Source.Parts()
	for name, src := range map[string]string{"wal": p.WAL, "snap": p.Snap} {
		if src == "" {
			continue
		}
		if err := Folder(ctx, src, filepath.Join(dst, "member", name)); err != nil {
			return fmt.Errorf("copying %s: %w", m.Label(), err)
		}
	}
	return nil
}

// Folder copies the files of a folder into a new one, except unfinished files of a server.
func Folder(ctx context.Context, src, dst string) error {
	if err := os.MkdirAll(dst, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") { // left by a server that was ended meanwhile
			continue
		}
		// The readers skip it too.
		if st, err := os.Stat(filepath.Join(src, e.Name())); err != nil || !st.Mode().IsRegular() {
			continue
		}
		if err := file(ctx, filepath.Join(src, e.Name()), filepath.Join(dst, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// file copies with sparse extents: WAL segments end in many zeros.
func file(ctx context.Context, src, dst string) (err error) {
	in, size, err := regular.Open(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = archive.WriteSparse(ctx, out, io.LimitReader(in, size))
	return errors.Join(err, out.Close())
}
