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
)

// held are the files of one attempt, open since they were first seen: the server may unlink them, their bytes stay.
type held struct {
	walDir, snapDir string

	mu    sync.Mutex
	wal   map[string]*os.File
	snaps map[string]*os.File
	// left are files that are not collected, by name.
	left map[string]string
}

func hold(walDir, snapDir string) (*held, error) {
	h := &held{walDir: walDir, snapDir: snapDir, wal: map[string]*os.File{}, snaps: map[string]*os.File{},
		left: map[string]string{}}
	if err := h.refresh(); err != nil {
		h.close()
		return nil, err
	}
	if len(h.wal) == 0 {
		h.close()
		return nil, &RefusedError{Reason: fmt.Sprintf("%s holds no WAL segment", walDir),
			Hint: "name the data dir with --data-dir, and with --wal-dir the folder of --wal-dir of the server"}
	}
	return h, nil
}

func (h *held) close() {
	for _, files := range []map[string]*os.File{h.wal, h.snaps} {
		for _, f := range files {
			_ = f.Close()
		}
	}
}

// refresh opens what is there and was not seen before.
func (h *held) refresh() error {
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

// list opens the files of a folder that are wanted. A file that vanishes in between was purged.
func (h *held) list(dir string, into map[string]*os.File, unwanted func(string) string) error {
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

// walLeftOver says why a file of the WAL folder is not collected; "-" where it is not worth a word.
func walLeftOver(name string) string {
	if strings.HasSuffix(name, ".tmp") {
		return "-" // the next segment, while it is preallocated
	}
	return "not a WAL segment"
}

func snapLeftOver(name string) string {
	switch {
	case name == "db":
		return "-"
	case strings.HasSuffix(name, ".snap.db"):
		return "a database received from a leader and not installed; copy it with the server stopped if it matters"
	case strings.HasPrefix(name, "tmp") || strings.HasSuffix(name, ".tmp") || strings.HasPrefix(name, "db.tmp"):
		return "a temporary file of the server"
	}
	return "not a .snap file"
}

// refreshEvery is how often the folders are looked at while the database is copied: a segment must be seen before it is
// purged.
const refreshEvery = time.Second

// watch refreshes until the returned function is called, which reports the first error.
func (h *held) watch(ctx context.Context) (stop func() error) {
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
func (h *held) log() (*dumplog.Log, []dumplog.SegmentFile, error) {
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

// snapFiles reads the .snap files; one that is being written looks damaged.
func (h *held) snapFiles() ([]snapFile, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []snapFile
	for name, f := range h.snaps {
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if st.Size() > dumplog.MaxSnapFile {
			h.left[name] = "larger than a .snap file can be"
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

// leftOut lists what was not collected.
func (h *held) leftOut() []LeftOut {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []LeftOut{}
	for name, why := range h.left {
		out = append(out, LeftOut{File: name, Why: why})
	}
	slices.SortFunc(out, func(a, b LeftOut) int { return strings.Compare(a.File, b.File) })
	return out
}

func (h *held) leave(name, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left[name] = why
}

// walBytes is what the segments take at most.
func (h *held) walBytes() (n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.wal {
		if st, err := f.Stat(); err == nil {
			n += st.Size()
		}
	}
	return n
}
