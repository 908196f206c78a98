package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTerms(t *testing.T) {
	dir := t.TempDir()
	if _, err := terms(dir); err == nil {
		t.Error("a module without a licence was taken")
	}
	write(t, dir, "LICENSE-APACHE.txt", "you may\r\n")
	write(t, dir, "NOTICE", "by them\n\n")
	write(t, dir, "license.go", "package x")
	write(t, dir, "README", "no")
	got, err := terms(dir)
	if want := "LICENSE-APACHE.txt:\n\nyou may\n\nNOTICE:\n\nby them\n\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

// The program's own module list is what the check compares with: another text is refused.
func TestCheck(t *testing.T) {
	root := "../.."
	if err := run(root, "go", true); err != nil {
		t.Error(err)
	}
	text, err := notices(root, "go")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\ngo.etcd.io/etcd/server/v3 v3.5.", "\ngo.etcd.io/etcd/server/v3 v3.6.",
		"\ngo.etcd.io/etcd/server/v3 v3.7.", "\nGo standard library\n", "\ngithub.com/spf13/cobra v",
		"\ngithub.com/prometheus/procfs v",         // linked on Linux only
		"\ngithub.com/inconshreveable/mousetrap v", // linked on Windows only
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not named", want)
		}
	}
}

// TestSystemsOfReleases: the modules are those of every system that a release is built for.
func TestSystemsOfReleases(t *testing.T) {
	text, err := os.ReadFile("../dist/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var released []string
	for _, m := range regexp.MustCompile(`\{"(\w+)", "(\w+)"\}`).FindAllStringSubmatch(string(text), -1) {
		released = append(released, m[1]+"/"+m[2])
	}
	have := slices.Sorted(slices.Values(systems))
	if slices.Sort(released); len(released) < 5 || !slices.Equal(released, have) {
		t.Errorf("releases are built for %v, modules are looked up for %v", released, have)
	}
}

// TestDependenciesAreExplained compares the list in docs/DEPENDENCIES.md with what go.mod requires directly.
func TestDependenciesAreExplained(t *testing.T) {
	out, err := exec.Command("go", "mod", "edit", "-json", "../../go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range mod.Require {
		if !m.Indirect {
			want = append(want, m.Path)
		}
	}
	text, err := os.ReadFile("../../docs/DEPENDENCIES.md")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .+ \\|$").FindAllStringSubmatch(string(text), -1) {
		have = append(have, m[1])
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Errorf("docs/DEPENDENCIES.md lists\n%v\ngo.mod requires\n%v", have, want)
	}
}
