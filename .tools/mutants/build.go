package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variable is the environment variable that chooses a change by its number.
const variable = "MUTANT_NUMBER"

// chooser is the file that each package gets; %s is its name.
const chooser = `package %s

import "os"

var mutantNumber = os.Getenv("` + variable + `")
`

// changedFile is a file with several changes, of which at most one is chosen when it runs.
type changedFile struct {
	path, text string
	changes    []changeLines
}

// changeLines are the lines of the text that belong to one change.
type changeLines struct {
	first, last int
	of          *mutant
}

// withChanges puts changes into a file. The function that a change is in begins with the question whether the change
// is chosen, and then runs a copy of itself that has the change. The copy has lines of its own, which tell from an
// error of the compiler which change it is in.
func withChanges(path string, src []byte, changes []*mutant) *changedFile {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b *mutant) int { return a.in.start - b.in.start })
	f := &changedFile{path: path}
	var b strings.Builder
	at, line := 0, 1
	write := func(s string) {
		b.WriteString(s)
		line += strings.Count(s, "\n")
	}
	for _, m := range changes {
		write(string(src[at:m.in.start]) + "\n")
		at = m.in.start
		form := "if mutantNumber == %q { func() {%s\n}(); return }"
		if m.in.results != "" {
			form = "if mutantNumber == %q { return func() " + m.in.results + " {%s\n}() }"
		}
		lines := changeLines{first: line, of: m}
		write(fmt.Sprintf(form, strconv.Itoa(m.number), m.body(src)))
		lines.last = line
		f.changes = append(f.changes, lines)
		write("\n")
	}
	write(string(src[at:]))
	f.text = b.String()
	return f
}

// at returns the change that a line of the text belongs to, nil if there is none.
func (f *changedFile) at(line int) *mutant {
	for _, c := range f.changes {
		if c.first <= line && line <= c.last {
			return c.of
		}
	}
	return nil
}

// build builds a test program of each package with the changes of it, and marks those that do not build.
func (r *runner) build(ctx context.Context, drawn []*mutant) error {
	of := map[string]*pkg{}
	changes := map[*pkg][]*mutant{}
	for i, m := range drawn {
		m.number = i + 1
		of[m.pkg.path] = m.pkg
		changes[m.pkg] = append(changes[m.pkg], m)
	}
	packages := sorted(of)
	return r.each(ctx, len(packages), func(ctx context.Context, i int) error {
		p := packages[i]
		if err := r.measure(ctx, p); err != nil {
			return err
		}
		if err := markUnreadable(changes[p]); err != nil {
			return err
		}
		return r.buildPackage(ctx, p, changes[p])
	})
}

// markUnreadable marks the changes that are no Go: the compiler would look no further in the file.
func markUnreadable(changes []*mutant) error {
	for _, m := range changes {
		src, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		_, err = parser.ParseFile(token.NewFileSet(), m.file, m.apply(src), parser.SkipObjectResolution)
		m.broken = err != nil
	}
	return nil
}

// buildPackage builds until no change is left that the compiler refuses.
func (r *runner) buildPackage(ctx context.Context, p *pkg, changes []*mutant) error {
	p.program = filepath.Join(r.tmp, strings.ReplaceAll(p.path, "/", "-")+".test")
	for {
		var left []*mutant
		for _, m := range changes {
			// What no test runs is built too: whether it builds decides whether it counts.
			if !m.broken {
				left = append(left, m)
			}
		}
		if len(left) == 0 {
			return nil
		}
		overlay, files, err := r.overlay(p, left)
		if err != nil {
			return err
		}
		out, err := r.command(ctx, "test", "-c", "-vet=off", "-overlay", overlay, "-gcflags=-e", "-ldflags=-s -w",
			"-o", p.program, p.path).CombinedOutput()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !markRefused(files, string(out)) {
			return fmt.Errorf("%s with changes does not build: %w\n%s", p.path, err, out)
		}
	}
}

// overlay writes the changed files, and the file that tells the go command to read them instead.
func (r *runner) overlay(p *pkg, changes []*mutant) (path string, files []*changedFile, err error) {
	dir, err := os.MkdirTemp(r.tmp, "overlay")
	if err != nil {
		return "", nil, err
	}
	of := map[string][]*mutant{}
	for _, m := range changes {
		of[m.file] = append(of[m.file], m)
	}
	replace := map[string]string{}
	write := func(file, text string) error {
		to := filepath.Join(dir, filepath.Base(file))
		replace[file] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	name := ""
	for file, changes := range of {
		src, err := os.ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, src, parser.PackageClauseOnly)
		if err != nil {
			return "", nil, err
		}
		name = parsed.Name.Name
		f := withChanges(file, src, changes)
		files = append(files, f)
		if err := write(file, f.text); err != nil {
			return "", nil, err
		}
	}
	if err := write(filepath.Join(p.dir, "zz_mutant_number.go"), fmt.Sprintf(chooser, name)); err != nil {
		return "", nil, err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, files, os.WriteFile(path, text, 0o600)
}

var place = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`)

// markRefused marks the changes that the compiler's errors are in; false if there are none.
func markRefused(files []*changedFile, errors string) (some bool) {
	for _, found := range place.FindAllStringSubmatch(errors, -1) {
		line, err := strconv.Atoi(found[2])
		if err != nil {
			continue
		}
		for _, f := range files {
			if filepath.Base(f.path) != filepath.Base(found[1]) {
				continue
			}
			if m := f.at(line); m != nil {
				m.broken, some = true, true
			}
		}
	}
	return some
}

// test runs the tests of a package on a change and tells whether one notices it.
func (r *runner) test(ctx context.Context, m *mutant) (noticed bool, err error) {
	limit := 20*time.Second + 3*m.pkg.took
	// The tests end themselves; a context ends what hangs outside them.
	run, stop := context.WithTimeout(ctx, limit+time.Minute)
	defer stop()
	scratch, err := os.MkdirTemp(r.tmp, "run")
	if err != nil {
		return false, err
	}
	c := r.command(run, "-test.failfast", "-test.timeout", limit.String())
	c.Path, c.Args[0], c.Dir = m.pkg.program, m.pkg.program, m.pkg.dir
	c.Env = append(os.Environ(), variable+"="+strconv.Itoa(m.number), "TMPDIR="+scratch)
	noticed = c.Run() != nil
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return noticed, os.RemoveAll(scratch)
}
