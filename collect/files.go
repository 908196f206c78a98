package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// openFiles are the files of one attempt, opened when they were first seen. Their content stays readable if the server
// removes them.
type openFiles struct {
	walDir, snapDir string

	mu    sync.Mutex
	wal   map[string]*os.File
	snaps map[string]*os.File
	// left are the files that are not collected, with the reason.
	left map[string]string
}

func openAll(walDir, snapDir string) (*openFiles, error) {
	h := &openFiles{walDir: walDir, snapDir: snapDir, wal: map[string]*os.File{}, snaps: map[string]*os.File{},
		left: map[string]string{}}
	if err := h.refresh(); err != nil {
		h.close()
		return nil, err
	}
	if len(h.wal) == 0 {
		h.close()
		return nil, &refusal.Error{Reason: fmt.Sprintf("%s contains no WAL segment", walDir),
			Hint: "set --data-dir to the server's data dir, and --wal-dir to the server's --wal-dir"}
	}
	return h, nil
}

func (h *openFiles) close() {
	for _, files := range []map[string]*os.File{h.wal, h.snaps} {
		for _, f := range files {
			_ = f.Close()
		}
	}
}

// refresh opens the files that are new.
func (h *openFiles) refresh() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(
		h.list(h.walDir, h.wal, func(n string) string {
			if strings.HasSuffix(n, ".wal") {
				return ""
			}
			return walLeftOver(n)
		}),
		h.list(h.snapDir, h.snaps, func(n string) string {
			if strings.HasSuffix(n, ".snap") {
				return ""
			}
			return snapLeftOver(n)
		}))
}

// list opens the wanted files of a folder. A file that vanishes meanwhile was purged.
func (h *openFiles) list(dir string, into map[string]*os.File, unwanted func(string) string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, de := range names {
		name := de.Name()
		if why := unwanted(name); why != "" {
			if why != "-" {
				h.left[name] = why
			}
			continue
		}
		if into[name] != nil {
			continue
		}
		f, _, err := regular.Open(filepath.Join(dir, name))
		var special *regular.NotRegularError
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.As(err, &special):
			h.left[name] = special.Error()
		case err != nil:
			return err
		default:
			into[name] = f
		}
	}
	return nil
}

// walLeftOver returns why a file of the WAL folder is not collected; "-" if it need not be mentioned.
func walLeftOver(name string) string {
	if strings.HasSuffix(name, ".tmp") {
		return "-" // the next segment, still being preallocated
	}
	return "not a WAL segment"
}

func snapLeftOver(name string) string {
	switch {
	case name == "db":
		return "-"
	case strings.HasSuffix(name, ".snap.db"):
		return "a database received from a leader and not installed; to keep it, copy it while the server is stopped"
	case strings.HasPrefix(name, "tmp") || strings.HasSuffix(name, ".tmp") || strings.HasPrefix(name, "db.tmp"):
		return "a temporary file of the server"
	}
	return "not a .snap file"
}

// refreshEvery is how often the folders are listed while the database is copied. A segment must be opened before it is
// purged.
const refreshEvery = time.Second

// watch refreshes until the returned function is called. That function returns the first error.
func (h *openFiles) watch(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		t := time.NewTicker(refreshEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-t.C:
				if err := h.refresh(); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	return func() error { cancel(); return <-done }
}

// log opens the segments as they are now.
func (h *openFiles) log() (*dumplog.Log, []dumplog.SegmentFile, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var files []dumplog.SegmentFile
	for name, f := range h.wal {
		st, err := f.Stat()
		if err != nil {
			return nil, nil, err
		}
		files = append(files, dumplog.SegmentFile{Name: name, File: f, Size: st.Size()})
	}
	slices.SortFunc(files, func(a, b dumplog.SegmentFile) int { return strings.Compare(a.Name, b.Name) })
	l, err := dumplog.OpenFiles(h.walDir, files)
	return l, files, err
}

// snapFile is a .snap file that was read.
type snapFile struct {
	name string
	file *os.File
	size int64
	snap *dumplog.SnapFile
}

// snapFiles reads the .snap files. A file that is being written looks damaged.
func (h *openFiles) snapFiles() ([]snapFile, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []snapFile
	for name, f := range h.snaps {
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if st.Size() > dumplog.MaxSnapFile {
			h.left[name] = "too large for a .snap file"
			continue
		}
		b, err := io.ReadAll(io.NewSectionReader(f, 0, st.Size()))
		if err != nil {
			return nil, err
		}
		out = append(out, snapFile{name: name, file: f, size: int64(len(b)), snap: dumplog.DecodeSnapFile(name, b)})
	}
	slices.SortFunc(out, func(a, b snapFile) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// leftOut lists the files that were not collected.
func (h *openFiles) leftOut() []LeftOut {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []LeftOut{}
	for name, why := range h.left {
		out = append(out, LeftOut{File: name, Why: why})
	}
	slices.SortFunc(out, func(a, b LeftOut) int { return strings.Compare(a.File, b.File) })
	return out
}

func (h *openFiles) leave(name, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left[name] = why
}

// walBytes returns the total size of the segments, an upper bound for their copy.
func (h *openFiles) walBytes() (n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.wal {
		if st, err := f.Stat(); err == nil {
			n += st.Size()
		}
	}
	return n
}
