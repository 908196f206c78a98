// Command mutants asks of the tests of a package whether they would notice a mistake. It makes a small change in the
// package (a condition negated, < for <=, a statement dropped, a case removed, zero values returned), runs the
// package's own tests on it, and does so N times with changes drawn by a seed. It prints the changes that no test
// noticed, and the rate:
//
//	mutants -n 40 -seed 1 ./compare/replay
//	compare/replay/align.go:53 window.fits: < instead of <= in idx-1 < w.min
//	noticed 37 of 40 (92%), 3 changes did not build and were not counted
//
// All changes drawn of a package are built into one test program; an environment variable chooses one. What the tests
// do not run at all, by the coverage of a run without changes, is not tried: no test can notice it (what they run in
// another process counts as not run).
//
// A change that makes the same program cannot be noticed. Such changes are listed in a file (-same), each with the
// reason; they are tried too, and the command fails if a test notices one, or if the list names one that is none.
//
// The tree is never written to: the go command reads the changed files from elsewhere (-overlay). Each run of tests
// ends after a few times what the tests take unchanged, all of them after -limit. With -parallel, several packages or
// changes are tried at the same time, which pays where tests wait for processes. It ends with code 1 if the tests fail
// without a change, not for unnoticed changes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
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
	// parallel is how many runs of tests there are at a time, 1 if it is 0.
	parallel int
	// only, if set, matches the names of the changes that may be drawn.
	only *regexp.Regexp
	// sameFile lists the changes that make the same program.
	sameFile string
	packages map[string]*pkg
}

// counts are how the changes ended.
type counts struct{ noticed, survived, broken, same int }

func (c *counts) tried() int { return c.noticed + c.survived + c.same }

func (c *counts) add(o counts) {
	c.noticed, c.survived, c.broken, c.same = c.noticed+o.noticed, c.survived+o.survived, c.broken+o.broken, c.same+o.same
}

// String names the rate, of the changes that a test can notice.
func (c *counts) String() string {
	n, rate := c.noticed+c.survived, 100
	if n > 0 {
		rate = 100 * c.noticed / n
	}
	text := fmt.Sprintf("noticed %d of %d (%d%%), %d changes did not build and were not counted", c.noticed, n, rate,
		c.broken)
	if c.same > 0 {
		text += fmt.Sprintf(", %d make the same program", c.same)
	}
	return text
}

func main() {
	r := &runner{out: os.Stdout, dir: "."}
	flag.StringVar(&r.goTool, "go", "go", "the go command")
	flag.IntVar(&r.n, "n", 40, "how many changes are tried")
	flag.Uint64Var(&r.seed, "seed", 1, "draws the changes")
	flag.DurationVar(&r.limit, "limit", time.Hour, "no change is tried after this long")
	flag.IntVar(&r.parallel, "parallel", 1, "how many runs of tests there are at a time")
	flag.StringVar(&r.sameFile, "same", "", "a file that lists changes that make the same program")
	flag.Func("only", "try only changes whose line in the output matches", func(s string) (err error) {
		r.only, err = regexp.Compile(s)
		return err
	})
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
	r.packages = map[string]*pkg{}
	all, err := r.list(ctx, packages)
	if err != nil {
		return c, err
	}
	if err := r.markSame(all); err != nil {
		return c, err
	}
	rnd := rand.New(rand.NewPCG(r.seed, 0))
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	until := time.Now().Add(r.limit)
	for len(all) > 0 && c.tried() < r.n && time.Now().Before(until) {
		// Some do not build: a few more than needed save a second build.
		missing := r.n - c.tried()
		drawn := all[:min(len(all), missing+missing/8+2)]
		all = all[len(drawn):]
		if err := r.build(ctx, drawn); err != nil {
			return c, err
		}
		if err := r.try(ctx, drawn, &c, until); err != nil {
			if c.tried() > 0 && ctx.Err() != nil { // stopped by the user
				err = errors.Join(err, r.sum(&c))
			}
			return c, err
		}
	}
	return c, r.sum(&c)
}

// try runs the tests on the changes until n were tried.
func (r *runner) try(ctx context.Context, drawn []*mutant, c *counts, until time.Time) error {
	var chosen []*mutant
	for _, m := range drawn {
		if c.tried()+len(chosen) >= r.n {
			break
		}
		if m.broken {
			c.broken++
			m.pkg.counts.broken++
			continue
		}
		chosen = append(chosen, m)
	}
	var mu sync.Mutex
	return r.each(ctx, len(chosen), func(ctx context.Context, i int) error {
		if time.Now().After(until) {
			return nil
		}
		m := chosen[i]
		noticed, how, err := r.tryOne(ctx, m)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		var one counts
		switch {
		case noticed && m.same:
			return fmt.Errorf("%s lists a change that a test noticed: %s", r.sameFile, m)
		case noticed:
			one.noticed++
		case m.same:
			one.same++
		default:
			one.survived++
			fmt.Fprintf(r.out, "%s%s\n", m, how)
		}
		m.pkg.counts.add(one)
		c.add(one)
		return nil
	})
}

// tryOne tells whether a test notices a change, and of one that is not noticed why, if that is known.
func (r *runner) tryOne(ctx context.Context, m *mutant) (noticed bool, how string, err error) {
	if !m.pkg.runs(m) {
		return false, " (no test runs it)", nil
	}
	noticed, err = r.test(ctx, m)
	return noticed, "", err
}

// each calls do for 0..n-1, as many at a time as are wanted. The first error ends the others and is returned.
func (r *runner) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	slots := make(chan struct{}, max(1, r.parallel))
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, i); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// sum prints the rates.
func (r *runner) sum(c *counts) error {
	if c.tried() == 0 {
		return errors.New("no change could be tried")
	}
	if len(r.packages) > 1 {
		for _, p := range sorted(r.packages) {
			if p.counts.tried() > 0 {
				fmt.Fprintf(r.out, "%s: %s\n", r.name(p.dir), &p.counts)
			}
		}
	}
	fmt.Fprintln(r.out, c)
	if c.tried() < r.n {
		fmt.Fprintf(r.out, "%d were asked for: the time was up, or there are no more\n", r.n)
	}
	return nil
}

// name is the file as seen from where the command runs.
func (r *runner) name(file string) string {
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(dir, file); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(rel)
	}
	return file
}
