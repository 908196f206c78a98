package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the packager of Debian
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the packager of rpm distributions
)

const (
	home    = "https://github.com/etcd-medic/etcd-medic"
	summary = "Forensic inspection and repair toolkit for etcd"
	// demo holds the three members of a real incident, for whoever has installed a package and nothing to look at yet.
	demo = "testdata/incidents/a-auth-revision-replay/nodes.tar.gz"
)

// packages writes deb and rpm for the full Linux programs, or for the lite ones if no others are built.
func (r *release) packages(context.Context) error {
	for _, p := range r.built {
		if p.OS != "linux" || (p.name == lite) != r.liteOnly {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(p, format); err != nil {
				return fmt.Errorf("%s of %s: %w", format, r.stem(p), err)
			}
		}
	}
	return nil
}

func (r *release) pack(p program, format string) error {
	contents, err := r.contents(p, format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: p.name, Arch: p.Arch, Platform: p.OS, Version: r.version, Release: "1", Section: "admin",
		Priority:   "optional",
		Maintainer: "etcd-medic maintainers <etcd-medic@users.noreply.github.com>", Description: summary,
		Homepage: home, License: "Apache-2.0", MTime: r.when,
		DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents,
			// Both bring /usr/bin/etcd-medic.
			Conflicts: []string{map[string]string{full: lite, lite: full}[p.name]},
			Umask:     0o022,
			RPM:       nfpm.RPM{BuildHost: "localhost", Summary: summary},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	path := filepath.Join(r.out, r.stem(p)+"."+format)
	return create(path, func(w io.Writer) error { return packager.Package(info, w) })
}

// contents says where a package puts the program, its man pages, completions and texts.
func (r *release) contents(p program, format string) (files.Contents, error) {
	doc := "/usr/share/doc/" + p.name + "/"
	out := files.Contents{file(p.path, "/usr/bin/etcd-medic", 0o755)}
	for _, t := range texts {
		to := doc + t
		if t == "LICENSE" && format == "deb" {
			to = doc + "copyright"
		}
		out = append(out, file(filepath.Join(r.tree, t), to, 0o644))
	}
	// Not among the documents: containers are often set up to leave those out.
	out = append(out, file(filepath.Join(r.tree, demo), "/usr/share/etcd-medic/demo.tar.gz", 0o644))
	for _, s := range shells {
		to := s.installed
		if format == "rpm" {
			to = strings.Replace(to, "vendor-completions", "site-functions", 1)
		}
		out = append(out, file(filepath.Join(r.extras, "completions", s.file), to, 0o644))
	}
	pages, err := os.ReadDir(filepath.Join(r.extras, "man"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		out = append(out, file(filepath.Join(r.extras, "man", page.Name()), "/usr/share/man/man1/"+page.Name(), 0o644))
	}
	return out, nil
}

func file(from, to string, mode os.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root",
		Group: "root"}}
}
