package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pkg is a package whose tests are to notice changes.
type pkg struct {
	path, dir string
	counts    counts
	// took is how long the tests take unchanged, 0 if they did not run yet.
	took time.Duration
	// blocks are what the tests run of each file, by base name.
	blocks map[string][]block
	// program is the test program that holds changes.
	program string
}

// block is a stretch of a file, and whether the tests run it.
type block struct {
	from, to position
	run      bool
}

type position struct{ line, col int }

func (p position) before(o position) bool {
	return p.line < o.line || p.line == o.line && p.col < o.col
}

// runs tells whether a test runs the place of a change. It may: what belongs to no block counts as run.
func (p *pkg) runs(m *mutant) bool {
	at, inside := position{m.line, m.col}, false
	for _, b := range p.blocks[filepath.Base(m.file)] {
		if at.before(b.from) || !at.before(b.to) {
			continue
		}
		if b.run {
			return true
		}
		inside = true
	}
	return !inside
}

// list lists all changes that can be made to the packages that have tests.
func (r *runner) list(ctx context.Context, packages []string) (out []*mutant, err error) {
	list := exec.CommandContext(ctx, r.goTool,
		append([]string{"list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles", "--"}, packages...)...)
	list.Dir, list.Stderr = r.dir, os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			ImportPath, Dir                    string
			GoFiles, TestGoFiles, XTestGoFiles []string
		}
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(p.TestGoFiles)+len(p.XTestGoFiles) == 0:
			continue
		}
		of := &pkg{path: p.ImportPath, dir: p.Dir}
		r.packages[of.path] = of
		for _, name := range p.GoFiles {
			found, err := r.listFile(of, filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
}

// listFile lists the changes of a file that may be drawn.
func (r *runner) listFile(of *pkg, file string) ([]*mutant, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found, err := mutantsOf(file, src)
	if err != nil {
		return nil, err
	}
	for _, m := range found {
		m.pkg, m.name = of, r.name(file)
	}
	if r.only != nil {
		found = slices.DeleteFunc(found, func(m *mutant) bool { return !r.only.MatchString(m.String()) })
	}
	return found, nil
}

// measure runs the tests of a package unchanged, once, and notes what they run.
func (r *runner) measure(ctx context.Context, p *pkg) error {
	if p.took > 0 {
		return nil
	}
	profile := filepath.Join(r.tmp, strings.ReplaceAll(p.path, "/", "-")+".coverage")
	start := time.Now()
	out, err := r.command(ctx, "test", "-vet=off", "-count=1", "-timeout", "10m", "-coverprofile", profile,
		p.path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the tests of %s fail without a change: %w\n%s", p.path, err, out)
	}
	p.took = time.Since(start)
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	p.blocks, err = readCoverage(string(text))
	return err
}

// readCoverage reads a coverage profile: after a first line, "FILE:LINE.COL,LINE.COL STATEMENTS COUNT" per block.
func readCoverage(text string) (map[string][]block, error) {
	blocks := map[string][]block{}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i == 0 {
			continue
		}
		colon := strings.LastIndex(line, ":")
		fields := strings.FieldsFunc(line[colon+1:], func(c rune) bool { return c == '.' || c == ',' || c == ' ' })
		var n [6]int
		err := error(nil)
		if colon < 0 || len(fields) != len(n) {
			return nil, fmt.Errorf("coverage profile, line %d: %q", i+1, line)
		}
		for k := range n {
			if n[k], err = strconv.Atoi(fields[k]); err != nil {
				return nil, fmt.Errorf("coverage profile, line %d: %w", i+1, err)
			}
		}
		file := filepath.Base(line[:colon])
		blocks[file] = append(blocks[file], block{position{n[0], n[1]}, position{n[2], n[3]}, n[5] > 0})
	}
	return blocks, nil
}

func (r *runner) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, r.goTool, args...)
	c.Dir = r.dir
	c.WaitDelay = 10 * time.Second
	return c
}

// sorted are the packages by path.
func sorted(packages map[string]*pkg) (out []*pkg) {
	for _, p := range packages {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
	return out
}
