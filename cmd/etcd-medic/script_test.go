package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/node"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

func TestMain(m *testing.M) {
	if handled, code := node.RunHidden(os.Args); handled { // a command under test runs servers as the program does
		os.Exit(code)
	}
	testscript.Main(withScratch{m}, map[string]func(){
		"etcd-medic": func() { os.Exit(cli.Main(context.Background(), os.Args[1:], cli.System())) },
	})
}

// withScratch removes the unpacked incidents at the end.
type withScratch struct{ m *testing.M }

func (w withScratch) Run() int { return evidencetest.Run(w.m) }

// TestScripts runs every command on real incidents. A script names its inputs with incident, copy or evidence; at its
// end all of them must be byte-identical, with modes and modification times.
func TestScripts(t *testing.T) {
	s := scripts{t: t}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"incident":           s.incident,
			"copy":               s.copy,
			"cut":                s.cut,
			"zero":               s.zero,
			"pack":               s.pack,
			"age":                s.age,
			"chain":              s.chain,
			"kubedb":             s.kubeDB,
			"evidence":           s.evidence,
			"evidence-unchanged": s.unchanged,
			"code":               s.code,
			"head":               s.head,
			"json":               s.json,
			"poke":               s.poke,
			"wal":                s.walWrite,
		},
	})
}

type scripts struct{ t *testing.T }

// incident NAME makes the shared, read-only incident available under its name.
func (s scripts) incident(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 1, "incident NAME")
	dir := evidencetest.Incident(s.t, args[0])
	ts.Check(os.Symlink(dir, ts.MkAbs(args[0])))
	s.watch(ts, dir)
}

// copy SRC DST makes a private copy that may be damaged; evidence DST puts it under watch once it is.
func (s scripts) copy(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 2, "copy SRC DST")
	src, err := filepath.EvalSymlinks(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[1])), 0o755))
	ts.Check(os.Rename(evidencetest.Copy(s.t, src), ts.MkAbs(args[1])))
}

// cut FILE SIZE truncates a file.
func (s scripts) cut(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 2, "cut FILE SIZE")
	ts.Check(os.Truncate(ts.MkAbs(args[0]), number(ts, args[1])))
}

func number(ts *testscript.TestScript, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	ts.Check(err)
	return n
}

// evidence PATH... puts inputs under watch.
func (s scripts) evidence(ts *testscript.TestScript, _ bool, args []string) {
	for _, a := range args {
		s.watch(ts, ts.MkAbs(a))
	}
}

func (s scripts) watch(ts *testscript.TestScript, dir string) {
	before, err := evidencetest.TreeHash(dir)
	ts.Check(err)
	name := ts.Name()
	ts.Defer(func() {
		after, err := evidencetest.TreeHash(dir)
		if err != nil || before != after {
			s.t.Errorf("%s: evidence %s was changed (%v)", name, dir, err)
		}
	})
}

// unchanged DIR HASH-FILE is the proof in the open: with a missing file it writes the hash of DIR, else it compares.
func (s scripts) unchanged(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 2, "evidence-unchanged DIR FILE")
	dir, err := filepath.EvalSymlinks(ts.MkAbs(args[0]))
	ts.Check(err)
	hash, err := evidencetest.TreeHash(dir)
	ts.Check(err)
	file := ts.MkAbs(args[1])
	was, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		ts.Check(os.WriteFile(file, []byte(hash), 0o600))
		return
	}
	ts.Check(err)
	if string(was) != hash {
		ts.Fatalf("%s changed", args[0])
	}
}

// code N PROGRAM ARG... runs a program and wants exit code N.
func (s scripts) code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code is %d, want %d", got, want)
	}
	if strings.Contains(ts.ReadFile("stderr"), "goroutine ") {
		ts.Fatalf("the program panicked")
	}
}

// head N FILE writes the first N lines of the last output to FILE.
func (s scripts) head(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, args, 2, "head N FILE")
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	lines := strings.SplitAfterN(ts.ReadFile("stdout"), "\n", n+1)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines[:min(n, len(lines))], "")), 0o600))
}

// json [lines] wants the last output to be JSON: one document, or one per line.
func (s scripts) json(ts *testscript.TestScript, _ bool, args []string) {
	docs := []string{ts.ReadFile("stdout")}
	if len(args) > 0 {
		docs = strings.Split(strings.TrimSuffix(docs[0], "\n"), "\n")
	}
	for _, d := range docs {
		if err := oneDocument(d); err != nil {
			ts.Fatalf("not JSON: %v\n%s", err, d)
		}
	}
}

func usage(ts *testscript.TestScript, neg bool, args []string, n int, text string) {
	if neg || len(args) != n {
		ts.Fatalf("usage: %s", text)
	}
}

var errTrailing = errors.New("more than one document")

func oneDocument(s string) error {
	d := json.NewDecoder(strings.NewReader(s))
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	if err := d.Decode(&v); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}
