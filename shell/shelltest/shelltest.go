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
	t         testing.TB
	bin, work string
	// Redirected are the files to which printed commands redirect. Any other new file fails the test.
	Redirected []string
}

// New makes a world.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{t: t, bin: t.TempDir(), work: t.TempDir()}
	for _, name := range programs {
		// one write for each call: the programs of a pipe run at the same time
		script := "#!/bin/sh\nprintf '%s\\000' " + name + " \"$@\" \"$(printf '\\001')\" >>\"$RECORD\"\n" +
			outputs[name] + "\n"
		if err := os.WriteFile(filepath.Join(w.bin, name), []byte(script), 0o700); err != nil {
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
	record := filepath.Join(w.bin, "record")
	_ = os.Remove(record) // the first line has none
	cmd := exec.Command(sh, "-c", line)
	cmd.Dir, cmd.Env = w.work, []string{"PATH=" + w.bin, "RECORD=" + record, "LC_ALL=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		w.t.Errorf("%s: %s\n%v %s", sh, line, err, out)
	}
	made, err := os.ReadDir(w.work)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range made {
		if !slices.Contains(w.Redirected, m.Name()) {
			w.t.Fatalf("%s: %s\nmade %q: data was executed", sh, line, m.Name())
		}
	}
	b, err := os.ReadFile(record)
	if err != nil {
		w.t.Errorf("%s: %s\nnothing ran: %v", sh, line, err)
	}
	var calls [][]string
	for _, c := range strings.Split(strings.TrimSuffix(string(b), "\x01\x00"), "\x01\x00") {
		calls = append(calls, strings.Split(strings.TrimSuffix(c, "\x00"), "\x00"))
	}
	return calls
}
