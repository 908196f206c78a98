// Command mutants asks of the tests of a package whether they would notice a mistake. It makes a small change in the
// package (a condition negated, < for <=, a statement dropped, a case removed, zero values returned), runs the
// package's own tests on it, and does so N times with changes drawn by a seed. It prints the changes that no test
// noticed, and the rate:
//
//	mutants -n 40 -seed 1 ./compare/replay
//	compare/replay/align.go:53: < instead of <= in idx-1 < w.min
//	noticed 37 of 40 (92%), 3 changes did not build and were not counted
//
// The tree is never written to: the go command reads the changed file from elsewhere (-overlay). Each run of tests ends
// after a few times what the tests take unchanged, all of them after -limit. It ends with code 1 if the tests fail
// without a change, not for unnoticed changes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// runner draws mutants and runs tests on them.
type runner struct {
	out    io.Writer
	goTool string
	// dir is where the packages are named from, tmp holds the changed files.
	dir, tmp string
	n        int
	seed     uint64
	limit    time.Duration
	// took is how long the tests of each package take unchanged.
	took map[string]time.Duration
}

// target is a change and the package whose tests are to notice it.
type target struct {
	pkg string
	mutant
}

// counts are how the changes ended.
type counts struct{ noticed, survived, broken int }

func main() {
	r := &runner{out: os.Stdout, dir: ".", took: map[string]time.Duration{}}
	flag.StringVar(&r.goTool, "go", "go", "the go command")
	flag.IntVar(&r.n, "n", 40, "how many changes are tried")
	flag.Uint64Var(&r.seed, "seed", 1, "draws the changes")
	flag.DurationVar(&r.limit, "limit", time.Hour, "no change is tried after this long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	_, err := r.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func (r *runner) run(ctx context.Context, packages []string) (c counts, err error) {
	if r.tmp, err = os.MkdirTemp("", "mutants"); err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.tmp)) }()
	all, err := r.targets(ctx, packages)
	if err != nil {
		return c, err
	}
	rnd := rand.New(rand.NewPCG(r.seed, 0))
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	until := time.Now().Add(r.limit)
	for i := range all {
		if c.noticed+c.survived >= r.n || time.Now().After(until) {
			break
		}
		if err := r.try(ctx, &all[i], &c); err != nil {
			return c, err
		}
	}
	tried := c.noticed + c.survived
	if tried == 0 {
		return c, errors.New("no change could be tried")
	}
	fmt.Fprintf(r.out, "noticed %d of %d (%d%%), %d changes did not build and were not counted\n", c.noticed, tried,
		100*c.noticed/tried, c.broken)
	if tried < r.n {
		fmt.Fprintf(r.out, "%d were asked for: the time was up, or there are no more\n", r.n)
	}
	return c, nil
}

// targets lists all changes that can be made to the packages that have tests.
func (r *runner) targets(ctx context.Context, packages []string) (out []target, err error) {
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
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found, err := mutantsOf(file, src)
			if err != nil {
				return nil, err
			}
			for _, m := range found {
				out = append(out, target{p.ImportPath, m})
			}
		}
	}
}

// try counts how one change ends, and prints it where no test notices it.
func (r *runner) try(ctx context.Context, t *target, c *counts) error {
	if err := r.measure(ctx, t.pkg); err != nil {
		return err
	}
	overlay, err := r.overlay(t)
	if err != nil {
		return err
	}
	if r.command(ctx, "build", "-overlay", overlay, t.pkg).Run() != nil {
		c.broken++
		return ctx.Err()
	}
	limit := 20*time.Second + 3*r.took[t.pkg]
	// The tests end themselves; a context ends what hangs outside them.
	run, stop := context.WithTimeout(ctx, limit+5*time.Minute)
	defer stop()
	err = r.command(run, "test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", limit.String(),
		t.pkg).Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.noticed++
		return nil
	}
	c.survived++
	fmt.Fprintf(r.out, "%s:%d: %s\n", r.name(t.file), t.line, t.what)
	return nil
}

// measure runs the tests of a package unchanged, once.
func (r *runner) measure(ctx context.Context, pkg string) error {
	if _, ok := r.took[pkg]; ok {
		return nil
	}
	start := time.Now()
	if out, err := r.command(ctx, "test", "-vet=off", "-count=1", "-timeout", "10m", pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("the tests of %s fail without a change: %w\n%s", pkg, err, out)
	}
	r.took[pkg] = time.Since(start)
	return nil
}

// overlay writes the changed file, and the file that tells the go command to read it instead.
func (r *runner) overlay(t *target) (path string, err error) {
	src, err := os.ReadFile(t.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(r.tmp, "changed.go")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {t.file: changed}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(r.tmp, "overlay.json")
	return path, errors.Join(os.WriteFile(changed, t.apply(src), 0o600), os.WriteFile(path, text, 0o600))
}

func (r *runner) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, r.goTool, args...)
	c.Dir = r.dir
	c.WaitDelay = 10 * time.Second
	return c
}

// name is the file as seen from where the command runs.
func (r *runner) name(file string) string {
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(dir, file); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return file
}
