// Command notices writes THIRD_PARTY_NOTICES.txt: the licence texts of every module that is linked into the program and
// into the servers that it brings, from the module cache. With -check it fails if the file is another one.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

const (
	file = "THIRD_PARTY_NOTICES.txt"
	head = "etcd-medic contains software of others. Below are the modules that its program and the etcd servers in " +
		"it are built from, with their licences\n" +
		"and notices. Made by `make notices`; do not edit.\n"
)

// programs are the folders whose main packages go into a release, with the build tags that each is built with, and the
// systems that they are built for: some modules are for one only.
var (
	programs = []struct{ dir, pkg, tags string }{{".", "./cmd/etcd-medic", ""}, {".", "./cmd/etcd-medic", "lines"},
		{".", "./cmd/etcd-medic", "lite"}, {"node/line35", ".", ""}, {"node/line37", ".", ""}}
	systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}
)

// legal are the files that say under which terms a module is passed on.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright|unlicense)([-._].*)?$`)

type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

func main() {
	root := flag.String("root", ".", "root of the repository")
	check := flag.Bool("check", false, "compare with the file instead of writing it")
	goTool := flag.String("go", "go", "go command")
	flag.Parse()
	if err := run(*root, *goTool, *check); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(root, goTool string, check bool) error {
	text, err := notices(root, goTool)
	if err != nil {
		return err
	}
	path := filepath.Join(root, file)
	if !check {
		return os.WriteFile(path, text, 0o644) //nolint:gosec // everybody may read it
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, text) {
		return fmt.Errorf("%s is not what the linked modules say; run make notices", file)
	}
	return nil
}

// notices is the whole text: modules with the same files stand together.
func notices(root, goTool string) ([]byte, error) {
	mods, err := linked(root, goTool)
	if err != nil {
		return nil, err
	}
	mods["Go standard library"] = runtimeDir(goTool)
	names := map[string][]string{} // by text
	for name, dir := range mods {
		text, err := terms(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		names[text] = append(names[text], name)
	}
	texts := make([]string, 0, len(names))
	for text, of := range names {
		slices.Sort(of)
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int { return strings.Compare(names[a][0], names[b][0]) })
	var b bytes.Buffer
	b.WriteString(head)
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s", strings.Repeat("=", 80), strings.Join(names[text], "\n"),
			strings.Repeat("=", 80), text)
	}
	return b.Bytes(), nil
}

// linked returns the folders of all modules that some program links, by path and version.
func linked(root, goTool string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range programs {
		for _, system := range systems {
			if err := modulesOf(root, goTool, p.dir, p.pkg, p.tags, system, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// modulesOf adds the modules of one program as it is built for one system.
func modulesOf(root, goTool, dir, pkg, tags, system string, out map[string]string) error {
	goos, goarch, _ := strings.Cut(system, "/")
	cmd := exec.Command(goTool, "list", "-e", "-deps", "-tags", tags, "-json=Module", pkg)
	cmd.Dir, cmd.Stderr = filepath.Join(root, dir), os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly",
		"GOWORK=off")
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s in %s: %w", cmd, dir, err)
	}
	for d := json.NewDecoder(bytes.NewReader(list)); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		m := p.Module
		if m == nil || m.Main {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Dir == "" {
			return fmt.Errorf("%s %s is not in the module cache; run go mod download in %s", m.Path, m.Version, dir)
		}
		out[m.Path+" "+m.Version] = m.Dir
	}
}

func runtimeDir(goTool string) string {
	if b, err := exec.Command(goTool, "env", "GOROOT").Output(); err == nil {
		return strings.TrimSpace(string(b))
	}
	return runtime.GOROOT()
}

// terms are the legal files of a module, or of the repository above it, one below the other.
func terms(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() || !legal.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		clean := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
		fmt.Fprintf(&b, "%s:\n\n%s\n\n", e.Name(), clean)
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("no licence in %s", dir)
	}
	return b.String(), nil
}
