package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// zeros is a source of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// slowArchive takes many milliseconds to unpack, a small file of a large one that is empty, and turns out to be cut
// short.
func slowArchive(t *testing.T) string {
	t.Helper()
	const size = 256 << 20
	path := filepath.Join(t.TempDir(), "slow.tar.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	if err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "node1/member/snap/db", Size: size,
		Mode: 0o600}); err == nil {
		_, err = io.CopyN(w, zeros{}, size)
	}
	for _, c := range []io.Closer{w, z, f} {
		if e := c.Close(); err == nil {
			err = e
		}
	}
	if err == nil {
		st, _ := os.Stat(path)
		err = os.Truncate(path, st.Size()-6)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProgressOfListings: extract, dumplog and dumpdb show how far they are while their result goes to a file, and
// nothing in a pipe.
func TestProgressOfListings(t *testing.T) {
	dir := t.TempDir()
	node := clustertest.Synth{Members: 1, Entries: 60_000, Keys: 20_000, Value: 300}.WriteMember(t, dir, 0)
	line := regexp.MustCompile(`reading \S+: [\d.]+ [KM]?i?B of [\d.]+ [KM]iB, \d+ %, [\d.]+ [KM]?i?B/s`)
	for i, args := range [][]string{{"dumplog", node}, {"dumpdb", node, "key"},
		{"extract", node, "-o", filepath.Join(dir, "out.jsonl")}} {
		p := newTerminal(t)
		Main(t.Context(), args, &Streams{Out: io.Discard, Err: p.slave, ErrTTY: true, Width: 100,
			Patience: time.Millisecond, Getenv: func(string) string { return "" }})
		_, _ = p.slave.WriteString("END")
		p.until("all is shown", func() bool { return strings.Contains(p.shown(), "END") })
		if n := len(line.FindAllString(p.shown(), -1)); n == 0 {
			t.Errorf("%v shows no progress: %q", args, p.shown())
		}
		var errs bytes.Buffer
		if args[0] == "extract" {
			args[3] += strconv.Itoa(i)
		}
		Main(t.Context(), args, &Streams{Out: io.Discard, Err: &errs, Width: 100, Patience: time.Millisecond,
			Getenv: func(string) string { return "" }})
		if strings.Contains(errs.String(), "reading") || strings.Contains(errs.String(), "\r") {
			t.Errorf("%v in a pipe: %q", args, errs.String())
		}
	}
}

// TestProgressIsForPeople: a person who looks at stderr sees bytes, percent and rate of what takes time, and the line
// is gone at the end. A program gets nothing of it: not in a pipe, not with a format for programs, not with --quiet.
func TestProgressIsForPeople(t *testing.T) {
	path := slowArchive(t)
	run := func(args ...string) string {
		p := newTerminal(t)
		var out bytes.Buffer
		Main(t.Context(), args, &Streams{Out: &out, Err: p.slave, ErrTTY: true, Width: 100, Patience: time.Millisecond,
			Getenv: func(string) string { return "" }})
		_, _ = p.slave.WriteString("END")
		p.until("all is shown", func() bool { return strings.Contains(p.shown(), "END") })
		return p.shown()
	}
	line := regexp.MustCompile(`unpacking slow\.tar\.gz: [\d.]+ [KM]?i?B of [\d.]+ [KM]iB, \d+ %, [\d.]+ [KM]?i?B/s`)
	shown := run("inspect", path)
	if !line.MatchString(shown) {
		t.Errorf("no progress in %q", shown)
	}
	before, _, failed := strings.Cut(shown, "etcd-medic: ")
	if last := before[strings.LastIndex(before, "\r")+1:]; !failed || last != "" {
		t.Errorf("before the error stands %q", last)
	}
	if shown = run("inspect", path, "-w", "json"); strings.Contains(shown, "unpacking") {
		t.Errorf("with -w json: %q", shown)
	}
	if shown = run("verify", path, "--quiet"); strings.Contains(shown, "unpacking") {
		t.Errorf("with --quiet: %q", shown)
	}
	var out, errs bytes.Buffer
	Main(t.Context(), []string{"inspect", path}, &Streams{Out: &out, Err: &errs, Width: 100, Patience: time.Millisecond,
		Getenv: func(string) string { return "" }})
	if strings.Contains(errs.String(), "unpacking") || strings.Contains(errs.String(), "\r") {
		t.Errorf("in a pipe: %q", errs.String())
	}
}
