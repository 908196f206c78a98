// Command dist builds a release of etcd-medic from the commit that is checked out: programs for each system, deb and
// rpm packages, a container image as an OCI archive, manifests for krew and Homebrew, man pages, completions, a bill of
// materials and checksums. Two runs on one commit write the same bytes. Nothing is fetched: modules must be in the
// module cache (`make modules`).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	r := release{}
	var targets string
	flag.StringVar(&r.root, "root", ".", "root of the repository")
	flag.StringVar(&r.out, "o", "dist", "folder for the artefacts; must be empty or missing")
	flag.StringVar(&r.goTool, "go", "go", "go command")
	flag.StringVar(&r.version, "version", "", "version, as 0.1.0 (default: the tag, else the newest version of "+
		"CHANGELOG.md and the commit)")
	flag.StringVar(&targets, "targets", "", "systems to build for, as linux/amd64,windows/amd64 (default: all)")
	flag.BoolVar(&r.liteOnly, "lite", false, "only the programs without etcd servers of other lines")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := r.setTargets(targets)
	if err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// platform is a system that a release is built for.
type platform struct{ OS, Arch string }

// String returns the form that the names of archives have: OS/ARCH.
func (p platform) String() string { return p.OS + "/" + p.Arch }

// exe is the name of a program on this system.
func (p platform) exe(name string) string {
	if p.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// platforms are the systems of a release.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

func (r *release) setTargets(list string) error {
	if list == "" {
		r.targets = platforms
		return nil
	}
	for _, name := range strings.Split(list, ",") {
		found := false
		for _, p := range platforms {
			if p.String() == name {
				r.targets, found = append(r.targets, p), true
			}
		}
		if !found {
			return fmt.Errorf("no system %q: there are %v", name, platforms)
		}
	}
	return nil
}

// emptyFolder makes a folder, or accepts one that is empty.
func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return os.MkdirAll(dir, 0o755)
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty: it holds %s", dir, filepath.Base(entries[0].Name()))
	}
	return nil
}
