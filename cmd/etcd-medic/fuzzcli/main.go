// Command fuzzcli runs etcd-medic on mutated evidence, from outside like a user. It fails on a panic, a signal, a run
// that does not end, unbounded memory, broken JSON, a changed input, leftover scratch, an unknown exit code, control
// characters in the output, and a set reported as healthy although a check can detect the change.
//
// A run depends only on the seed and its number, so `fuzzcli -seed S -first N -runs 1` repeats one.
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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func main() { os.Exit(fuzz()) }

func fuzz() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := &fuzzer{out: os.Stdout, found: map[string]int{}}
	flag.StringVar(&f.medic, "medic", "bin/etcd-medic", "the program")
	flag.StringVar(&f.incidents, "incidents", "testdata/incidents", "folder with the incidents")
	flag.Uint64Var(&f.seed, "seed", 1, "seed of all runs")
	flag.IntVar(&f.first, "first", 0, "number of the first run")
	flag.IntVar(&f.runs, "runs", 300, "how many runs")
	flag.StringVar(&f.keep, "keep", "", "folder for the sets of runs that failed")
	flag.IntVar(&f.parallel, "parallel", 2, "how many runs go at a time")
	flag.StringVar(&f.only, "only", "", "only mutations whose name contains this")
	flag.Parse()
	failed, err := f.all(ctx)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "fuzzcli:", err)
		return 2
	case failed > 0:
		return 1
	}
	return 0
}

// fuzzer is one series of runs.
type fuzzer struct {
	medic, incidents, keep, only string
	seed                         uint64
	first, runs, parallel        int
	out                          io.Writer
	scratch                      string
	sets                         []string
	// mu guards the fields below and the output.
	mu sync.Mutex
	// found counts findings by kind; failed and done count runs.
	found        map[string]int
	failed, done int
}

// all does the runs and returns how many failed.
func (f *fuzzer) all(ctx context.Context) (failed int, err error) {
	if f.medic, err = filepath.Abs(f.medic); err != nil {
		return 0, err
	}
	if f.scratch, err = os.MkdirTemp("", "fuzzcli-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(f.scratch)) }()
	if err := f.unpack(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, f.parallel))
	for n := f.first; n < f.first+f.runs && gctx.Err() == nil; n++ {
		g.Go(func() error {
			if err := f.one(gctx, n); err != nil {
				return fmt.Errorf("run %d: %w", n, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return f.failed, err
	}
	if err := ctx.Err(); err != nil {
		return f.failed, err
	}
	f.say("%d runs with seed %d in %s: %d failed", f.done, f.seed, time.Since(begin).Round(time.Second), f.failed)
	for _, what := range slices.Sorted(mapKeys(f.found)) {
		f.say("%6d  %s", f.found[what], what)
	}
	return f.failed, nil
}

func mapKeys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (f *fuzzer) say(format string, args ...any) {
	_, _ = fmt.Fprintf(f.out, format+"\n", args...) // a reader notices a report that cannot be written
}

// unpack unpacks the incidents into scratch.
func (f *fuzzer) unpack(ctx context.Context) error {
	found, err := filepath.Glob(filepath.Join(f.incidents, "*", "nodes.tar.gz"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no incident in %s: %w", f.incidents, err)
	}
	for _, a := range found {
		dir := filepath.Join(f.scratch, "sets", filepath.Base(filepath.Dir(a)))
		if err := archive.Unpack(ctx, a, dir); err != nil {
			return err
		}
		f.sets = append(f.sets, dir)
	}
	return nil
}

// one does a run: a set, one to three mutations, one command.
func (f *fuzzer) one(ctx context.Context, n int) (err error) {
	r := rand.New(rand.NewPCG(f.seed, uint64(n)))
	from := one(r, f.sets)
	dir := filepath.Join(f.scratch, fmt.Sprintf("run-%d", n))
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &set{dir: filepath.Join(dir, "in")}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := evidencetest.CopyTo(from, s.dir); err != nil {
		return err
	}
	if s.members, err = filepath.Glob(filepath.Join(s.dir, "*")); err != nil {
		return err
	}
	did, seen, err := f.mutate(r, s)
	if err != nil {
		return err
	}
	judged := seen && strings.Contains(filepath.Base(from), "healthy")
	o, wrong, err := f.command(ctx, r, dir, s, judged)
	if err != nil {
		return err
	}
	if judged && o.args[0] == "diagnose" && s.allIn(o.args) && o.healthy() {
		wrong = append(wrong, "called healthy")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done++; f.done%500 == 0 {
		f.say("%d runs are done, %d failed", f.done, f.failed)
	}
	if len(wrong) == 0 {
		return nil
	}
	f.failed++
	f.say("run %d: %s, %s: %s", n, filepath.Base(from), strings.Join(did, ", "), o.line())
	for _, w := range wrong {
		f.say("  %s", w)
		what, _, _ := strings.Cut(w, ":")
		f.found[what]++
	}
	if f.keep != "" {
		to := filepath.Join(f.keep, fmt.Sprintf("run-%d", n))
		if err := errors.Join(os.MkdirAll(f.keep, 0o700), os.Rename(dir, to)); err != nil {
			return err
		}
	}
	return nil
}

// mutate applies one to three mutations. seen is true if there is only one kind of change and a check must detect it.
func (f *fuzzer) mutate(r *rand.Rand, s *set) (did []string, seen bool, err error) {
	var ms []mutation
	for _, m := range mutations {
		if strings.Contains(m.name, f.only) {
			ms = append(ms, m)
		}
	}
	if len(ms) == 0 {
		return nil, false, fmt.Errorf("no mutation is named %q", f.only)
	}
	for range 1 + r.IntN(3)*r.IntN(2) {
		m := one(r, ms)
		switch err := m.do(r, s); {
		case errors.Is(err, errNothing):
			continue
		case err != nil:
			return nil, false, fmt.Errorf("%s: %w", m.name, err)
		}
		did, seen = append(did, m.name), m.seen && len(did) == 0
	}
	return did, seen, nil
}

// command runs one command on the set and returns it with its faults. If a check must detect the change, the command is
// usually diagnose.
func (f *fuzzer) command(ctx context.Context, r *rand.Rand, dir string, s *set, judged bool) (o *outcome,
	wrong []string,
	err error) {
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return nil, nil, err
	}
	command := one(r, commands)
	if judged && r.IntN(4) > 0 {
		command = "diagnose ALL -w json"
	}
	args := s.args(r, command, filepath.Join(dir, "out"))
	before, err := state(s.dir)
	if err != nil {
		return nil, nil, err
	}
	if o, err = run(ctx, f.medic, tmp, args, patience); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	wrong = o.judge()
	after, err := state(s.dir)
	if err != nil || before != after {
		wrong = append(wrong, fmt.Sprintf("input changed: %v", err))
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		wrong = append(wrong, fmt.Sprintf("scratch left: %v %v", left, err))
	}
	return o, wrong, nil
}

// args inserts the sources into a command.
func (s *set) args(r *rand.Rand, command, out string) (args []string) {
	for a := range strings.FieldsSeq(command) {
		switch a {
		case "ALL":
			if s.archive != "" {
				args = append(args, s.archive)
				continue
			}
			for _, m := range s.members {
				args = append(args, s.named(m))
			}
		case "ONE":
			if s.archive != "" {
				args = append(args, s.archive)
				continue
			}
			args = append(args, s.named(one(r, s.members)))
		case "DB":
			if s.archive != "" {
				args = append(args, s.archive)
				continue
			}
			args = append(args, filepath.Join(one(r, s.members), "member", "snap", "db"))
		default:
			if suffix, ok := strings.CutPrefix(a, "OUT"); ok {
				a = out + suffix
			}
			args = append(args, a)
		}
	}
	return args
}

// allIn reports whether a command has all sources, so that the changed one is among them.
func (s *set) allIn(args []string) bool {
	if s.archive != "" {
		return slices.Contains(args, s.archive)
	}
	return !slices.ContainsFunc(s.members, func(m string) bool { return !slices.Contains(args, s.named(m)) })
}

func (s *set) named(m string) string {
	if n := s.names[m]; n != "" && !strings.HasPrefix(n, "-") {
		return n + "=" + m
	}
	return m
}
