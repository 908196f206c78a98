package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// release is one run: what is built, from which commit, and where to.
type release struct {
	root, out, goTool string
	version           string
	targets           []platform
	liteOnly          bool

	commit string    // abbreviated hash
	when   time.Time // of the commit; each file of the artefacts carries it
	tree   string    // an exported copy of the commit: what is not committed is not released
	extras string    // man pages and completions
	built  []program
}

// program is one built binary.
type program struct {
	platform
	name string // etcd-medic or etcd-medic-lite
	path string
}

func (r *release) run(ctx context.Context) error {
	if err := emptyFolder(r.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "etcd-medic-dist-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"read the commit", r.identify},
		{"export the commit", func(ctx context.Context) error { return r.export(ctx, filepath.Join(work, "tree")) }},
		{"write man pages and completions", func(ctx context.Context) error {
			return r.documents(ctx,
				filepath.Join(work, "extras"))
		}},
		{"build programs", func(ctx context.Context) error { return r.buildAll(ctx, filepath.Join(work, "bin")) }},
		{"write archives", r.archives},
		{"write packages", r.packages},
		{"write the image", r.image},
		{"write bills of materials", r.boms},
		{"write manifests", r.manifests},
		{"write checksums", r.checksums},
	}
	for _, s := range steps {
		fmt.Fprintln(os.Stderr, "dist:", s.name)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// identify reads commit, time and version.
func (r *release) identify(ctx context.Context) error {
	commit, err := r.git(ctx, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return err
	}
	r.commit = commit
	seconds, err := r.git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	r.when = time.Unix(n, 0).UTC()
	if r.version != "" {
		return nil
	}
	if tag, err := r.git(ctx, "describe", "--tags", "--exact-match"); err == nil {
		r.version = strings.TrimPrefix(tag, "v")
		return nil
	}
	return r.versionOfChangelog(ctx)
}

var versionHeading = regexp.MustCompile(`(?m)^## \[?(\d+\.\d+\.\d+)\]?`)

// versionOfChangelog names a commit without a tag after the newest version that the changelog describes.
func (r *release) versionOfChangelog(ctx context.Context) error {
	text, err := r.git(ctx, "show", "HEAD:CHANGELOG.md")
	if err != nil {
		return err
	}
	m := versionHeading.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("CHANGELOG.md has no heading with a version; name one with -version")
	}
	r.version = m[1] + "-dev." + r.commit
	return nil
}

// export copies the committed files; git sets their times to the commit's.
func (r *release) export(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(filepath.Dir(dir), "tree.tar")
	if _, err := r.git(ctx, "archive", "--format=tar", "-o", archive, "HEAD"); err != nil {
		return err
	}
	r.tree = dir
	_, err := command(ctx, "", nil, "tar", "-xf", archive, "-C", dir)
	return err
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	return command(ctx, r.root, nil, "git", args...)
}

// command runs a program and returns its standard output without the last line end; what it says on stderr is part of
// the error.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimRight(string(out), "\n"), nil
}
