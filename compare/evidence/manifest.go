package evidence

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/internal/regular"
)

// File is one line of a manifest.
type File struct {
	Path    string
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
	SHA256  string
	// Body is the digest of the content before a sha256 trailer, "" if the file size does not allow for one. It comes
	// from the same pass.
	Body string
	// What describes the file if it is not a regular file. Such files are listed but not read, so they have neither
	// size nor digest.
	What string
	// at is the path of the file, which is outside the source for a separate WAL dir.
	at string
}

// Manifest lists every file of a source with its digest, including those of a WAL outside the data dir. Its Digest
// depends only on relative names and bytes, so two copies of one data dir have the same Digest.
type Manifest struct {
	layout layout
	Files  []File
	// Bytes is the size of all regular files.
	Bytes int64
	// Unreadable are the files and folders that could not be read. The digest covers only their names.
	Unreadable []Unread
	hashing    *hashing
	once       sync.Once
	// stop aborts the hashing. done is closed after it, and err is then what stopped it.
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// Unread is a file or folder that could not be read, and why.
type Unread struct {
	Path string
	Err  error
}

// unread notes a path that could not be read. The error is kept without the path, which is said next to it.
func (m *Manifest) unread(path string, err error) {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	m.Unreadable = append(m.Unreadable, Unread{path, err})
}

// hashing is shared by the manifests of one Open: a context that outlives the reading, and a bound on the files hashed
// at the same time.
type hashing struct {
	ctx   context.Context //nolint:containedctx // it bounds work that continues after the call
	slots chan struct{}
}

func newHashing(ctx context.Context) *hashing {
	return &hashing{ctx: ctx, slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
}

// startHash computes the digests while the source is read, so that all cores are busy. They must not be read before
// wait has returned.
func (m *Manifest) startHash() {
	m.once.Do(func() {
		var ctx context.Context
		ctx, m.stop = context.WithCancel(m.hashing.ctx)
		m.done = make(chan struct{})
		go func() {
			defer close(m.done)
			counting, work := progress.Begin(ctx, "taking digests", m.Bytes)
			defer work.End()
			m.err = m.hash(counting, m.hashing.slots)
		}()
	})
}

func (m *Manifest) wait() error {
	<-m.done
	return m.err
}

// stopHash aborts the remaining hashing.
func (m *Manifest) stopHash() {
	if m.stop != nil {
		m.stop()
		<-m.done
	}
}

// tryOpen finds the files that cannot be opened, if no digest is computed.
func (m *Manifest) tryOpen() {
	for i := range m.Files {
		if m.Files[i].What != "" {
			continue
		}
		f, _, err := regular.Open(m.Files[i].at)
		if err != nil {
			m.unread(m.Files[i].Path, err)
			continue
		}
		_ = f.Close()
	}
}

// hash computes the digest of every file, as many at a time as there are slots.
func (m *Manifest) hash(ctx context.Context, slots chan struct{}) error {
	g, ctx := errgroup.WithContext(ctx)
	failed := make([]error, len(m.Files))
	for i := range m.Files {
		if m.Files[i].What != "" {
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return cmp.Or(g.Wait(), ctx.Err())
		}
		g.Go(func() error {
			defer func() { <-slots }()
			body := int64(-1)
			if size := m.Files[i].Size; size%512 == trailerLen {
				body = size - trailerLen
			}
			sum, part, err := hashFile(ctx, m.Files[i].at, body)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			failed[i] = err
			m.Files[i].SHA256, m.Files[i].Body = sum, part
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, err := range failed {
		known := func(u Unread) bool { return u.Path == m.Files[i].Path }
		if err != nil && !slices.ContainsFunc(m.Unreadable, known) {
			m.unread(m.Files[i].Path, err)
		}
	}
	return nil
}

// Digest returns the sha256 over the sorted names, sizes and digests of all files; for a single file it is the file's
// own. It waits for the hashing to finish.
func (m *Manifest) Digest() string {
	m.startHash()
	<-m.done
	if len(m.Files) == 1 && m.Files[0].Path == "." {
		return m.Files[0].SHA256
	}
	files := append([]File(nil), m.Files...)
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s %d %s%s\n", f.Path, f.Size, f.SHA256, f.What)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Unchanged verifies by names, sizes, modes and modification times that no file of the source was changed, added or
// removed since the manifest was created. The error names the first file.
func (m *Manifest) Unchanged(ctx context.Context) error {
	now, err := listFiles(ctx, m.layout)
	if err != nil {
		return err
	}
	listed := make(map[string]*File, len(now.Files))
	for i := range now.Files {
		listed[now.Files[i].Path] = &now.Files[i]
	}
	const running = "was the member still running when it was copied?"
	for i := range m.Files {
		f := &m.Files[i]
		n := listed[f.Path]
		switch {
		case n == nil:
			return &ChangedError{File: f.Path, How: "no longer exists: " + running}
		case n.Size != f.Size, n.Mode != f.Mode, !n.ModTime.Equal(f.ModTime), n.What != f.What:
			return &ChangedError{File: f.Path, How: "changed while it was read: " + running}
		}
		delete(listed, f.Path)
	}
	for i := range now.Files {
		if listed[now.Files[i].Path] != nil {
			return &ChangedError{File: now.Files[i].Path, How: "was created after reading began: " + running}
		}
	}
	return nil
}

// ChangedError says that a source changed while it was read, so nothing read from it can be trusted.
type ChangedError struct{ Source, File, How string }

// Error returns the source, the file and what happened to it.
func (e *ChangedError) Error() string {
	if e.Source != "" {
		return fmt.Sprintf("%s: %s %s", e.Source, e.File, e.How)
	}
	return e.File + " " + e.How
}

// hashBuffer fits in the second-level cache, so that data is hashed from there.
const hashBuffer = 256 << 10

// hashFile returns the digest of a file and, if split is not negative, that of its first split bytes.
func hashFile(ctx context.Context, path string, split int64) (whole, part string, err error) {
	f, size, err := regular.Open(path)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	buf := make([]byte, max(1, min(size, hashBuffer)))      // a snap folder may contain very many small files
	r := progress.From(ctx).Reader(io.LimitReader(f, size)) // appended data appears as a change
	for at := int64(0); ; {
		n, err := r.Read(buf)
		if cut := split - at; cut >= 0 && cut <= int64(n) && part == "" {
			h.Write(buf[:cut])
			part = hex.EncodeToString(h.Sum(nil)) // Sum does not change the state
			h.Write(buf[cut:n])
		} else {
			h.Write(buf[:n])
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), part, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return "", "", err
		}
	}
}
