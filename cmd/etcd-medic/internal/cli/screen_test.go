package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// incidentNames are all sets of testdata.
func incidentNames(t *testing.T) (out []string) {
	t.Helper()
	for _, kind := range []string{"incidents", "shapes"} {
		entries, err := os.ReadDir(filepath.Join(evidencetest.Root(t), "testdata", kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, e.Name())
			}
		}
	}
	return out
}

// rowsOn is how many rows of a terminal a text takes.
func rowsOn(columns int, text string) (n int) {
	for line := range strings.Lines(text) {
		n += max(1, (utf8.RuneCountInString(strings.TrimRight(line, "\n"))+columns-1)/columns)
	}
	return n
}

// TestOneScreen: the verdict of every incident, in words, with what to keep and what to type, stands on a terminal of 80×24, and the
// verdict is what is read last.
func TestOneScreen(t *testing.T) {
	for _, name := range incidentNames(t) {
		t.Run(name, func(t *testing.T) {
			dir := evidencetest.Incident(t, name)
			evidencetest.Unchanged(t, dir)
			t.Chdir(dir)
			entries, err := os.ReadDir(".")
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"diagnose"}
			for _, e := range entries {
				args = append(args, e.Name())
			}
			screenOf(t, args)
			screenOf(t, []string{"inspect", args[1]})
		})
	}
}

func screenOf(t *testing.T, args []string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(t.Context(), args, &Streams{Out: &out, Err: &errs, Width: 80, Getenv: func(string) string { return "" }})
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	word := map[int]string{ExitDone: "HEALTHY", ExitFindings: "NOT HEALTHY", ExitInconclusive: "INCONCLUSIVE"}[code]
	first, last := lines[0], lines[len(lines)-1]
	switch {
	case word == "":
		t.Errorf("%v: exit code %d: %s", args, code, errs.String())
	case !strings.HasPrefix(first, word+":") || !strings.HasPrefix(last, word) && code != ExitDone:
		t.Errorf("%v ends in code %d and says %q … %q", args, code, first, last)
	}
	if n := rowsOn(80, out.String()); n > 23 { // one is for the prompt
		t.Errorf("%v: %d rows:\n%s", args, n, out.String())
	}
	if word == "NOT HEALTHY" && !strings.Contains(out.String(), "\nDO NOW") {
		t.Errorf("%v says nothing to do:\n%s", args, out.String())
	}
	for i, l := range lines {
		if utf8.RuneCountInString(l) > 80 && !strings.HasPrefix(l, "    ") {
			t.Errorf("%v: line %d has %d columns: %s", args, i+1, utf8.RuneCountInString(l), l)
		}
	}
}
