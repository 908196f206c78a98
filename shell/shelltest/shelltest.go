// Package shelltest pastes printed commands into a shell whose programs only write their arguments down. A test sees
// what would have run.
package shelltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// programs are the names of all programs in a World, outputs what those print that others read.
var (
	programs = []string{"etcd-medic", "etcdctl", "etcdutl", "etcd", "systemctl", "mv", "cp", "chown", "pgrep", "sleep",
		"seq", "kubectl", "env", "less", "ssh", "cut"}
	outputs = map[string]string{"pgrep": "exit 1", "seq": "echo 1", "cut": "echo 7"}
)

// World is the programs and an empty working folder.
type World struct {
	t testing.TB
	// Bin is the folder of the programs, which write their arguments to its file "record"; Work is where lines run.
	Bin, Work string
	// Env are further variables of the shell, as NAME=VALUE.
	Env []string
	// Redirected are the files to which printed commands redirect. Any other new file fails the test.
	Redirected []string
}

// New makes a world.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{t: t, Bin: t.TempDir(), Work: t.TempDir()}
	for _, name := range programs {
		// one write for each call: the programs of a pipe run at the same time
		script := "#!/bin/sh\nprintf '%s\\000' " + name + " \"$@\" \"$(printf '\\001')\" >>\"$RECORD\"\n" +
			outputs[name] + "\n"
		if err := os.WriteFile(filepath.Join(w.Bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Shells returns the paths of the shells in which commands are pasted.
func Shells(t testing.TB) (paths []string) {
	t.Helper()
	for _, name := range []string{"sh", "bash"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// Run pastes a line and returns the argument lists of the programs that ran.
func (w *World) Run(sh, line string) [][]string {
	w.t.Helper()
	record := filepath.Join(w.Bin, "record")
	cmd := exec.Command(sh, "-c", line)
	cmd.Dir = w.Work
	cmd.Env = append([]string{"PATH=" + w.Bin, "RECORD=" + record, "LC_ALL=C.UTF-8"}, w.Env...)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		w.t.Errorf("%s: %s\n%v %s", sh, line, err, out)
	}
	calls := w.Calls()
	if len(calls) == 0 {
		w.t.Errorf("%s: %s\nnothing ran", sh, line)
	}
	return calls
}

// Calls returns the argument lists of the programs that ran since it was called last. A file in the working folder that
// is not one of Redirected fails the test.
func (w *World) Calls() (calls [][]string) {
	w.t.Helper()
	made, err := os.ReadDir(w.Work)
	if err != nil {
		w.t.Fatal(err)
	}
	record := filepath.Join(w.Bin, "record")
	b, err := os.ReadFile(record)
	for _, m := range made {
		if !slices.Contains(w.Redirected, m.Name()) {
			w.t.Fatalf("%q was made: data was executed\n%q", m.Name(), b)
		}
	}
	if err != nil || os.Remove(record) != nil { // nothing ran
		return nil
	}
	for _, c := range strings.Split(strings.TrimSuffix(string(b), "\x01\x00"), "\x01\x00") {
		calls = append(calls, strings.Split(strings.TrimSuffix(c, "\x00"), "\x00"))
	}
	return calls
}
