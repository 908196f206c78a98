// Package evidencetest is the test kit for everything that reads evidence. It unpacks the incidents under
// testdata/incidents, makes private copies to damage, and checks that a test did not change its evidence.
//
// Only tests may import it.
//
// An incident is unpacked once per test process and shared, so no test may write to it: copy it first (Copy). Main
// removes the scratch; a package calls it from its TestMain:
//
//	func TestMain(m *testing.M) { evidencetest.Main(m) }
//
// Without that, and after a killed process, the next test process removes it.
package evidencetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
)

// scratchPrefix starts the name of each test process's scratch directory; the process id follows.
const scratchPrefix = "etcd-medic-incidents-"

var (
	scratchOnce sync.Once
	scratchDir  string
	scratchErr  error

	incidentsMu sync.Mutex
	incidents   = map[string]*unpacked{}
)

// unpacked is one incident of this process.
type unpacked struct {
	once sync.Once
	dir  string
	err  error
}

// Main runs the tests, then removes the unpacked incidents, and ends the process if they failed.
func Main(m *testing.M) {
	if code := Run(m); code != 0 {
		os.Exit(code)
	}
}

// gcPercent is for tests of many small sets, which take up to a quarter less time with fewer garbage collections.
const gcPercent = 400

// Run is Main for a TestMain that needs the exit code.
func Run(m *testing.M) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	before := Niceness(0)
	code := m.Run()
	if now := Niceness(0); now != before {
		// only root could raise it again, and all that follows is many times slower on a busy machine
		fmt.Fprintf(os.Stderr, "evidencetest: a test lowered the priority of the process: nice %d, was %d\n",
			now, before)
		code = max(code, 1)
	}
	if scratchDir != "" {
		if err := os.RemoveAll(scratchDir); err != nil {
			fmt.Fprintln(os.Stderr, "evidencetest: scratch is left:", err)
		}
	}
	return code
}

// Incident unpacks testdata/incidents/NAME/nodes.tar.gz or testdata/shapes/NAME/nodes.tar.zst, once per process. It
// returns the directory with the members' data dirs (node1, node2 … or the names in the incident's truth.json). Of the
// zeros at the end of a WAL segment 64 KB remain. The directory is shared: read only.
func Incident(t testing.TB, name string) string {
	t.Helper()
	incidentsMu.Lock()
	u := incidents[name]
	if u == nil {
		u = &unpacked{}
		incidents[name] = u
	}
	incidentsMu.Unlock()
	u.once.Do(func() { u.dir, u.err = unpack(name) })
	if u.err != nil {
		t.Fatalf("incident %s: %v", name, u.err)
	}
	return u.dir
}

// Incidents returns the names of all incidents under testdata/incidents that have a nodes.tar.gz, sorted.
func Incidents(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(t), "testdata", "incidents", "*", "nodes.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no incident under testdata/incidents: %v", err)
	}
	return namesOf(files)
}

// Shapes returns the names of all sets under testdata/shapes, sorted.
func Shapes(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(t), "testdata", "shapes", "*", "nodes.tar.zst"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no set under testdata/shapes: %v", err)
	}
	return namesOf(files)
}

// namesOf returns the names of the files' folders.
func namesOf(files []string) []string {
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return names
}

// Root returns the root of the module: the nearest directory above the working directory with a go.mod. It stays so
// where the test goes elsewhere afterwards.
func Root(t testing.TB) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

var moduleRoot = sync.OnceValues(findRoot)

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod in %s or above it", start)
		}
	}
}

func unpack(name string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	scratchOnce.Do(func() { scratchDir, scratchErr = makeScratch(os.TempDir()) })
	if scratchErr != nil {
		return "", scratchErr
	}
	dir := filepath.Join(scratchDir, name)
	files, err := filepath.Glob(filepath.Join(root, "testdata", "*", name, "nodes.tar.*"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("incident %s has %d archives, want one: %w", name, len(files), err)
	}
	if err := archive.Unpack(context.Background(), files[0], dir); err != nil {
		return "", err
	}
	return dir, CutLogs(dir)
}

// makeScratch creates this process's scratch below tmp and removes that of ended processes.
func makeScratch(tmp string) (string, error) {
	old, err := filepath.Glob(filepath.Join(tmp, scratchPrefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range old {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), scratchPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && n > 0 && !alive(n) {
			if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
				return "", err
			}
		}
	}
	return os.MkdirTemp(tmp, fmt.Sprintf("%s%d-", scratchPrefix, os.Getpid()))
}

// alive reports whether a process with that id may exist. EPERM counts as alive: the process belongs to another user.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
