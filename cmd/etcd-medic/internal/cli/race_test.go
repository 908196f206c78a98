package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// racing are commands that have options by which a code of findings, or the check of another source, is left out.
var racing = []string{
	"diagnose ALL --fail-on never", "inspect %s --fail-on never", "verify DB --fail-on never -q",
	"explain P01 %s", "compare %s OTHER --as-script", "dumplog %s --peer OTHER",
	"extract %s --log OTHER -o OUT/with-log.jsonl",
	"restore %s --surviving OTHER --initial-cluster a=http://127.0.0.1:2380 -o OUT/surviving",
	"repair db %s --rebuild --accept-lost-revisions --accept-divergence -o OUT/accepted",
}

// alter gives all files below dir another modification time, again and again, until the result is called.
func alter(t *testing.T, dir string) (end func()) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, p)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	stop, began, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		at := time.Now()
		for n := 0; ; n++ {
			at = at.Add(time.Millisecond)
			for _, f := range files {
				if err := os.Chtimes(f, at, at); err != nil {
					ended <- err
					return
				}
			}
			if n == 0 {
				close(began)
			}
			select {
			case <-stop:
				ended <- nil
				return
			case <-time.After(100 * time.Microsecond):
			}
		}
	}()
	<-began
	return func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestRaceNeverEndsWithZero: whatever command reads a source that changes meanwhile, it does not end with exit code 0,
// and what writes new files leaves none. The same commands end as they should when nothing changes.
func TestRaceNeverEndsWithZero(t *testing.T) {
	for _, command := range slices.Concat(everyCommand, racing) {
		if strings.HasPrefix(command, "collect ") {
			continue // reads what a server writes to, and proves by the content that the parts belong together
		}
		t.Run(strings.ReplaceAll(command, "/", "-"), func(t *testing.T) {
			dir := t.TempDir()
			in := filepath.Join(dir, "in")
			if err := evidencetest.CopyTo(evidencetest.Incident(t, "m-healthy-3.6"), in); err != nil {
				t.Fatal(err)
			}
			c := partCase{incident: "m-healthy-3.6", member: "node2"}
			quiet, _, stderr := c.run(t, command, in, filepath.Join(dir, "quiet"))
			if quiet == ExitUsage || quiet == ExitError {
				t.Fatalf("without a change: exit code %d: %s", quiet, stderr)
			}
			changed := filepath.Join(in, "node2")
			if strings.Contains(command, "OTHER") && !strings.Contains(command, "compare") {
				changed = filepath.Join(in, "node1")
			}
			end := alter(t, changed)
			defer end()
			code := ExitDone
			for n := 0; n < 10 && code == ExitDone; n++ { // a short command may end between two changes
				out := filepath.Join(dir, fmt.Sprint("out", n))
				code, _, _ = c.run(t, command, in, out)
				left, err := os.ReadDir(out)
				if err != nil {
					t.Fatal(err)
				}
				if code != ExitDone && len(left) > 0 && quiet == ExitDone && !reportsAnyway(command) {
					t.Errorf("exit code %d, and there is %v", code, left)
				}
			}
			if code == ExitDone {
				t.Error("exit code 0 ten times")
			}
		})
	}
}

// reportsAnyway tells whether a command writes its file also when something is wrong with a source: reports say so.
func reportsAnyway(command string) bool {
	return strings.HasPrefix(command, "report ") || strings.HasPrefix(command, "bundle ") ||
		strings.HasPrefix(command, "extract ")
}
