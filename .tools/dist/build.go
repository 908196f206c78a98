package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const (
	main36  = "./cmd/etcd-medic"
	cli     = "github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	full    = "etcd-medic"
	lite    = "etcd-medic-lite"
	packed  = "node/internal/lines"
	packing = "./node/internal/pack"

	// fullTags embeds the servers of other lines and leaves out what gs:// would need for gRPC only, as the Makefile does.
	fullTags = "lines,disable_grpc_modules"
)

// lines are the modules of the etcd servers that a full program brings beside the one it is linked with.
var lines = []string{"line35", "line37"}

// buildAll builds each program for each target; servers of other lines are built for the same system and embedded.
func (r *release) buildAll(ctx context.Context, dir string) error {
	for _, p := range r.targets {
		if err := r.build(ctx, p, lite, dir, "-tags", "lite"); err != nil {
			return err
		}
		if r.liteOnly {
			continue
		}
		if err := r.packLines(ctx, p, dir); err != nil {
			return err
		}
		if err := r.build(ctx, p, full, dir, "-tags", fullTags); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) build(ctx context.Context, p platform, name, dir string, flags ...string) error {
	out := filepath.Join(dir, p.OS+"-"+p.Arch, name)
	link := fmt.Sprintf("-s -w -buildid= -X %s.version=%s -X %s.commit=%s", cli, r.version, cli, r.commit)
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", link, "-o", out}, flags...)
	if _, err := command(ctx, r.tree, goEnv(p), r.goTool, append(args, main36)...); err != nil {
		return fmt.Errorf("%s for %s: %w", name, p, err)
	}
	r.built = append(r.built, program{platform: p, name: name, path: out})
	return nil
}

// packLines builds the servers of the other lines for one system and puts them where the program embeds them from.
func (r *release) packLines(ctx context.Context, p platform, dir string) error {
	args := []string{"run", packing, packed}
	for _, line := range lines {
		out := filepath.Join(dir, p.OS+"-"+p.Arch, line)
		build := []string{"-C", "node/" + line, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=",
			"-o", out, "."}
		if _, err := command(ctx, r.tree, goEnv(p), r.goTool, build...); err != nil {
			return fmt.Errorf("%s for %s: %w", line, p, err)
		}
		args = append(args, out)
	}
	_, err := command(ctx, r.tree, offline, r.goTool, args...)
	return err
}

// offline keeps go from fetching anything: what a release is built from is in the module cache, checked against go.sum.
var offline = []string{"GOPROXY=off", "GOFLAGS=-mod=readonly", "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0"}

func goEnv(p platform) []string {
	env := append([]string{}, offline...)
	return append(env, "GOOS="+p.OS, "GOARCH="+p.Arch, "GOAMD64=v1", "GOARM64=v8.0")
}

// shells are those with completions, and where packages of Linux put them.
var shells = []struct{ name, file, installed string }{
	{"bash", "etcd-medic.bash", "/usr/share/bash-completion/completions/etcd-medic"},
	{"zsh", "_etcd-medic", "/usr/share/zsh/vendor-completions/_etcd-medic"},
	{"fish", "etcd-medic.fish", "/usr/share/fish/vendor_completions.d/etcd-medic.fish"},
}

// documents has a program for this machine write man pages and completions.
func (r *release) documents(ctx context.Context, dir string) error {
	r.extras = dir
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	tool := filepath.Join(dir, "etcd-medic")
	if _, err := command(ctx, r.tree, offline, r.goTool, "build", "-trimpath", "-buildvcs=false", "-o", tool,
		main36); err != nil {
		return err
	}
	if _, err := command(ctx, "", nil, tool, "docs", "--man", man); err != nil {
		return err
	}
	for _, s := range shells {
		text, err := command(ctx, "", nil, tool, "completion", s.name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(completions, s.file), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	return os.Remove(tool)
}
