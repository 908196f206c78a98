// Package casetest builds the sets of sources that the cases of checks and causes describe in text files. README.md
// says what a line of such a file means.
//
// Only tests may import it.
package casetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/protoadapt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// Line is one line of a case: a verb and the rest of the line.
type Line struct {
	// No is the number of the line in its file.
	No         int
	Verb, Rest string
}

// Words splits the rest of the line; a word in double quotes is a Go string.
func (l Line) Words(t *testing.T) []string {
	t.Helper()
	var out []string
	rest := strings.TrimSpace(l.Rest)
	for rest != "" {
		if rest[0] == '"' {
			q, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatalf("line %d: %v", l.No, err)
			}
			s, err := strconv.Unquote(q)
			if err != nil {
				t.Fatalf("line %d: %v", l.No, err)
			}
			out, rest = append(out, s), strings.TrimSpace(rest[len(q):])
			continue
		}
		word, tail, _ := strings.Cut(rest, " ")
		out, rest = append(out, word), strings.TrimSpace(tail)
	}
	return out
}

// Case is one set of sources, and what is wanted of it.
type Case struct {
	Name, File string
	// Lines build the set, Wants are the lines "want ..." without this word.
	Lines, Wants []Line
}

// ID names the case by its file and its name.
func (c *Case) ID() string { return strings.TrimSuffix(c.File, ".txt") + "/" + c.Name }

// Read reads the cases of all files that match the pattern. A case begins with a line "case NAME"; lines that begin
// with # are comments.
func Read(t *testing.T, pattern string) (cases []Case) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", pattern, err)
	}
	for _, f := range files {
		cases = append(cases, readFile(t, f)...)
	}
	return cases
}

func readFile(t *testing.T, file string) (cases []Case) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for no := 1; s.Scan(); no++ {
		text := strings.TrimSpace(s.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(text, " ")
		line := Line{No: no, Verb: verb, Rest: strings.TrimSpace(rest)}
		if verb == "case" {
			cases = append(cases, Case{Name: line.Rest, File: filepath.Base(file)})
			continue
		}
		if len(cases) == 0 {
			t.Fatalf("%s:%d: no case yet", file, no)
		}
		c := &cases[len(cases)-1]
		if verb == "want" {
			c.Wants = append(c.Wants, line)
		} else {
			c.Lines = append(c.Lines, line)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

// Source is one source of a case: a data dir, a database or a backup.
type Source struct {
	Name, Path string
	// Backup is set where the source is to be taken as a backup, whatever the file looks like.
	Backup bool
}

// Specs are the sources as arguments of a diagnosis.
func Specs(sources []Source) (specs []evidence.Spec) {
	for _, s := range sources {
		specs = append(specs, evidence.Spec{Name: s.Name, Where: s.Path, Backup: s.Backup})
	}
	return specs
}

// Open reads sources as far as a diagnosis reads them.
func Open(t *testing.T, sources []Source, o evidence.Options) *evidence.Set {
	t.Helper()
	o.Deep = true
	set, err := evidence.Open(t.Context(), Specs(sources), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set
}

// Build makes the sources of a case. A later change of their files fails the test.
func Build(t *testing.T, lines []Line) []Source {
	t.Helper()
	b := &builder{t: t, root: t.TempDir(), paths: map[string]string{}, backups: map[string]bool{}}
	for _, l := range lines {
		b.do(l)
	}
	b.write()
	var out []Source
	var paths []string
	for _, n := range b.names {
		out = append(out, Source{Name: n, Path: b.paths[n], Backup: b.backups[n]})
		paths = append(paths, b.paths[n])
	}
	evidencetest.Unchanged(t, paths...)
	return out
}

// builder makes the sources of a case.
type builder struct {
	t      *testing.T
	root   string
	script *clustertest.Script
	hands  *hands
	// names are the sources in the order in which they were made, paths their folders.
	names []string
	paths map[string]string
	// backups are those taken as one, whatever the file looks like.
	backups map[string]bool
}

// do carries one line out.
func (b *builder) do(l Line) {
	b.t.Helper()
	switch l.Verb {
	case "incident":
		b.incident(l.Rest)
	case "script":
		b.script = clustertest.NewScript(l.Rest)
	case "auth", "step", "start", "leader", "member", "purged":
		b.scriptLine(l)
	case "hands":
		b.hands = newHands(b.t, b.root, l)
	case "only":
		b.write()
		b.names = l.Words(b.t)
	default:
		if b.hands != nil && b.hands.do(l) {
			return
		}
		b.write()
		if !b.edit(l) {
			b.t.Fatalf("line %d: no verb %q", l.No, l.Verb)
		}
	}
}

// incident takes a private copy of an incident.
func (b *builder) incident(name string) {
	b.t.Helper()
	dir := evidencetest.Copy(b.t, evidencetest.Incident(b.t, name))
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		b.add(e.Name(), filepath.Join(dir, e.Name()))
	}
}

func (b *builder) add(name, path string) {
	b.names = append(b.names, name)
	b.paths[name] = path
}

// write makes the files of a script, once.
func (b *builder) write() {
	b.t.Helper()
	if b.hands != nil {
		b.hands.finish()
		for i, h := range b.hands.of {
			b.add(fmt.Sprintf("node%d", i+1), h.Dir)
		}
		b.hands = nil
	}
	if b.script == nil {
		return
	}
	for i, dir := range b.script.Write(b.t, b.root) {
		b.add(fmt.Sprintf("node%d", i+1), dir)
	}
	b.script = nil
}

// scriptLine adds to the script.
func (b *builder) scriptLine(l Line) {
	b.t.Helper()
	if b.script == nil {
		b.t.Fatalf("line %d: %s comes before script, or after the files were changed", l.No, l.Verb)
	}
	switch l.Verb {
	case "auth":
		b.script.EnableAuth()
	case "leader":
		term, err := strconv.ParseUint(l.Rest, 10, 64)
		b.ok(l, err)
		b.script.Add(clustertest.Step{Empty: true, Term: term})
	case "start":
		b.script.Start(b.position(l, l.Rest))
	case "purged":
		n, err := strconv.Atoi(l.Rest)
		b.ok(l, err)
		b.script.Purged = n
	case "member":
		name, text, _ := strings.Cut(l.Rest, " ")
		of := b.script.Of[b.position(l, name)]
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		b.ok(l, d.Decode(&of))
		b.script.Of[b.position(l, name)] = of
	case "step":
		b.script.Add(b.step(l))
	}
}

// step reads "step [by=NODE] [user=NAME] [auth=REVISION] [skip=NODE,NODE] REQUEST".
func (b *builder) step(l Line) clustertest.Step {
	b.t.Helper()
	var st clustertest.Step
	rest := l.Rest
	for {
		word, tail, _ := strings.Cut(rest, " ")
		name, value, ok := strings.Cut(word, "=")
		if !ok || strings.ContainsAny(name, ":{<\"") {
			break
		}
		rest = tail
		switch name {
		case "by":
			st.By = b.position(l, value)
		case "user":
			st.User = value
		case "auth":
			n, err := strconv.ParseUint(value, 10, 64)
			b.ok(l, err)
			st.AuthRevision = n
		case "skip":
			for _, n := range strings.Split(value, ",") {
				st.Skip = append(st.Skip, b.position(l, n))
			}
		default:
			b.t.Fatalf("line %d: no word %s= in a step", l.No, name)
		}
	}
	st.Req = &etcdserverpb.InternalRaftRequest{}
	b.ok(l, prototext.Unmarshal([]byte(rest), protoadapt.MessageV2Of(st.Req)))
	return st
}

// position is that of a member: 0 for node1.
func (b *builder) position(l Line, name string) int {
	b.t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
	if err != nil || n < 1 {
		b.t.Fatalf("line %d: no member %q", l.No, name)
	}
	return n - 1
}

func (b *builder) ok(l Line, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("line %d: %s %s: %v", l.No, l.Verb, l.Rest, err)
	}
}
