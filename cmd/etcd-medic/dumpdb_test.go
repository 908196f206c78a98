package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// dumpDBAsks are questions to a database file that together use every flag of dumpdb.
var dumpDBAsks = []string{
	"", "key", "meta", "lease", "alarm", "auth", "authUsers", "authRoles", "members", "members_removed", "cluster",
	"auth-users --unsafe-show-secrets", "key --limit 2", "key --values", "--key /svc/003", "--prefix /svc/ --keys-only",
	"--history /svc/003", "--rev 140", "--from-rev 140 --to-rev 150", "--live", "--deleted", "--salvage", "--free",
	"--kube --values",
	"--stats", "--stats --depth 1", "--hashkv", "--hashkv --rev 140", "--pages", "--page 2", "--page 0",
	"--previous-meta",
}

// shape is a sound file and what was done to it.
type shape struct {
	name string
	harm func(t *testing.T, file string)
	// codes are the exit codes that may come.
	codes []int
}

func dumpDBShapes() []shape {
	cut := func(size int64) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			if err := os.Truncate(file, size); err != nil {
				t.Fatal(err)
			}
		}
	}
	return []shape{
		{"healthy", func(*testing.T, string) {}, []int{0}},
		{"cut in half", cut(40000), []int{0, 3}},
		{"cut in the first page", cut(100), []int{3}},
		{"empty", cut(0), []int{3}},
		{"no meta page", overwrite(0, make([]byte, 8192)), []int{3}},
		{"noise in pages", overwrite(4096*3+100, bytes.Repeat([]byte{0xff, 0x3c, 0x01}, 9000)), []int{0, 3}},
	}
}

func overwrite(at int64, with []byte) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(with, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDumpDBEveryFlag asks every question of files in every shape, in all formats: the exit code is one of those that
// the shape allows, JSON is JSON, and a damaged file never passes for a sound one without a word.
func TestDumpDBEveryFlag(t *testing.T) {
	allFlagsAsked(t)
	for _, s := range dumpDBShapes() {
		t.Run(s.name, func(t *testing.T) {
			dir := evidencetest.Copy(t, filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1"))
			s.harm(t, filepath.Join(dir, "member", "snap", "db"))
			evidencetest.Unchanged(t, dir)
			for _, ask := range dumpDBAsks {
				for _, format := range []string{"table", "fields", "json", "jsonl"} {
					askDumpDB(t, s, dir, ask, format)
				}
			}
		})
	}
}

func askDumpDB(t *testing.T, s shape, dir, ask, format string) {
	t.Helper()
	var out, stderr bytes.Buffer
	args := append([]string{"dumpdb", dir, "-w", format}, strings.Fields(ask)...)
	code := cli.Main(context.Background(), args,
		&cli.Streams{Out: &out, Err: &stderr, Getenv: func(string) string { return "" }})
	ok := false
	for _, c := range s.codes {
		ok = ok || c == code
	}
	switch {
	case !ok:
		t.Errorf("%q: code %d, want one of %v\n%s%s", args[2:], code, s.codes, out.String(), stderr.String())
	case code == 0 && stderr.Len() > 0, code == 3 && !strings.Contains(out.String(), damageWord[format]) &&
		!strings.Contains(out.String(), "NOT VALID"):
		t.Errorf("%q: code %d, but\n%s%s", args[2:], code, out.String(), stderr.String())
	}
	var docs []string
	switch format {
	case "json":
		docs = []string{out.String()}
	case "jsonl":
		docs = strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	for _, d := range docs {
		if err := oneDocument(d); err != nil && out.Len() > 0 {
			t.Errorf("%q: %v\n%s", args[2:], err, d)
		}
	}
}

// damageWord is how a row of damage begins in each format.
var damageWord = map[string]string{"table": "!! ", "fields": `"kind" : "damage"`, "json": `{"kind":"damage"`,
	"jsonl": `{"kind":"damage"`}

var helpFlag = regexp.MustCompile(`(?m)^ +(?:-\w, |    )--([a-z-]+)`)

// allFlagsAsked fails when a flag of the help text is in no question.
func allFlagsAsked(t *testing.T) {
	t.Helper()
	var out, stderr bytes.Buffer
	cli.Main(context.Background(), []string{"dumpdb", "--help"},
		&cli.Streams{Out: &out, Err: &stderr, Getenv: func(string) string { return "" }})
	found := helpFlag.FindAllStringSubmatch(out.String(), -1)
	if len(found) < 20 {
		t.Fatalf("only %d flags in the help text:\n%s", len(found), out.String())
	}
	// Flags of every command and those of running members ask nothing of a file.
	asked := strings.Join(dumpDBAsks, " ") + " --write-out --help --no-color --no-pager --cacert --cert --tls-key --user " +
		"--endpoints --cluster --max-memory "
	for _, f := range found {
		if !strings.Contains(asked, "--"+f[1]+" ") {
			t.Errorf("no question uses --%s", f[1])
		}
	}
}
