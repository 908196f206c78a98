// Package walls proves that the rules of .golangci.yml stand: it lays out a small module that breaks each of them and
// one that breaks none, and runs the linter on it. A rule that lets its breach pass is a wall that is not there.
package walls

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// want marks a line of walls.txt on which the linter must report something that holds the given text.
var want = regexp.MustCompile(" *// want `([^`]*)`")

const repo = "../.."

func TestWalls(t *testing.T) {
	linter := os.Getenv("GOLANGCI_LINT")
	if linter == "" {
		linter = filepath.Join(repo, ".tools", "bin", "golangci-lint")
	}
	linter, err := filepath.Abs(linter)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", ".golangci.yml"} {
		b, err := os.ReadFile(filepath.Join(repo, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, b)
	}
	wanted := layOut(t, dir)
	reported := lint(t, linter, dir)
	for _, w := range wanted {
		if !met(w, reported) {
			t.Errorf("%s: nothing reported that holds %q", w.place, w.text)
		}
	}
	for _, r := range reported {
		if !asked(r, wanted) {
			t.Errorf("%s: unexpected: %s", r.place, r.text)
		}
	}
	if len(wanted) == 0 {
		t.Error("walls.txt wants nothing")
	}
}

// note is something wanted or reported at file:line.
type note struct{ place, text string }

func met(w note, reported []note) bool {
	for _, r := range reported {
		if r.place == w.place && strings.Contains(r.text, w.text) {
			return true
		}
	}
	return false
}

func asked(r note, wanted []note) bool {
	for _, w := range wanted {
		if r.place == w.place && strings.Contains(r.text, w.text) {
			return true
		}
	}
	return false
}

// layOut writes the files of walls.txt (each begins with "-- NAME --") and returns what they want.
func layOut(t *testing.T, dir string) []note {
	t.Helper()
	b, err := os.ReadFile("walls.txt")
	if err != nil {
		t.Fatal(err)
	}
	var wanted []note
	var name string
	files := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok {
			name = strings.TrimSuffix(n, " --")
			continue
		}
		if name == "" {
			continue // the head comment
		}
		files[name] = append(files[name], line)
		for _, m := range want.FindAllStringSubmatch(line, -1) {
			wanted = append(wanted, note{fmt.Sprintf("%s:%d", name, len(files[name])), m[1]})
		}
	}
	for name, lines := range files {
		write(t, dir, name, []byte(strings.TrimRight(want.ReplaceAllString(strings.Join(lines, ""), ""), "\n")+"\n"))
	}
	return wanted
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// lint runs the linter and returns its reports. Its exit code is not looked at, since there are findings by intent;
// output that is no report fails the test.
func lint(t *testing.T, linter, dir string) []note {
	t.Helper()
	cmd := exec.Command(linter, "run", "--output.json.path=stdout", "--show-stats=false", "--allow-parallel-runners",
		"./...")
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	var doc struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct {
				Filename string
				Line     int
			}
		}
	}
	if err := json.NewDecoder(strings.NewReader(string(out))).Decode(&doc); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	var notes []note
	for _, i := range doc.Issues {
		notes = append(notes, note{fmt.Sprintf("%s:%d", i.Pos.Filename, i.Pos.Line), i.FromLinter + ": " + i.Text})
	}
	sort.Slice(notes, func(a, b int) bool { return notes[a].place < notes[b].place })
	return notes
}
