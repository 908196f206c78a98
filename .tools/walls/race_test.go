package walls

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// starts is a line that starts a goroutine.
var starts = regexp.MustCompile(`(?m)^\s*(go (func\(|[A-Za-z.]+\()|[A-Za-z.]+\.Go\(func)`)

// measuring are the packages whose goroutines only serve tests of others.
var measuring = []string{"./cmd/etcd-medic/fuzzcli", "./compare/evidence/clustertest", "./compare/soak"}

// TestRaceSeesEveryGoroutine: each package that starts goroutines is in the list that `make race` tests. What else is
// in the list is used by goroutines of others, and its tests start some.
func TestRaceSeesEveryGoroutine(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repo, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(makefile), "\nCONCURRENT := ")
	list, _, found := strings.Cut(rest, "\nCOMPUTING")
	if !found {
		t.Fatal("the Makefile has no list CONCURRENT before COMPUTING")
	}
	listed := strings.Fields(strings.ReplaceAll(list, "\\\n", " "))
	for _, dir := range concurrent(t, false) {
		i := slices.Index(listed, dir)
		if i >= 0 {
			listed = slices.Delete(listed, i, i+1)
		} else if !slices.Contains(measuring, dir) {
			t.Errorf("%s starts goroutines and is not in CONCURRENT", dir)
		}
	}
	tested := concurrent(t, true)
	for _, dir := range listed {
		if !slices.Contains(tested, dir) {
			t.Errorf("no goroutine is started in %s, nor in its tests", dir)
		}
	}
}

// concurrent lists the packages of the program that start goroutines, or those whose tests do.
func concurrent(t *testing.T, tests bool) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(repo, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || len(name) > 2 && name[0] == '.'):
			return fs.SkipDir
		case d.IsDir() && path != repo && exists(filepath.Join(path, "go.mod")):
			return fs.SkipDir // a module of its own
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") != tests:
			return nil
		}
		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(repo, filepath.Dir(path))
		if dir := "./" + filepath.ToSlash(rel); starts.Match(code) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
