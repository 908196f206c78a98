package check_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/protoadapt"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// caseLine is one line of a case: a verb and the rest of the line.
type caseLine struct {
	no         int
	verb, rest string
}

// words splits the rest of the line; a word in double quotes is a Go string.
func (l caseLine) words(t *testing.T) []string {
	t.Helper()
	var out []string
	rest := strings.TrimSpace(l.rest)
	for rest != "" {
		if rest[0] == '"' {
			q, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatalf("line %d: %v", l.no, err)
			}
			s, err := strconv.Unquote(q)
			if err != nil {
				t.Fatalf("line %d: %v", l.no, err)
			}
			out, rest = append(out, s), strings.TrimSpace(rest[len(q):])
			continue
		}
		word, tail, _ := strings.Cut(rest, " ")
		out, rest = append(out, word), strings.TrimSpace(tail)
	}
	return out
}

// checkCase is one set of sources and what checks must say of it.
type checkCase struct {
	name, file string
	lines      []caseLine
	wants      []want
}

// want is the outcome of one check. members are those that its findings must name, and no other; reason is part of why
// it was not checked.
type want struct {
	id, outcome string
	members     []string
	reason      string
}

// readCases reads the cases of a file. A case begins with a line "case NAME"; lines that begin with # are comments.
func readCases(t *testing.T, file string) (cases []checkCase) {
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
		line := caseLine{no: no, verb: verb, rest: strings.TrimSpace(rest)}
		switch {
		case verb == "case":
			cases = append(cases, checkCase{name: line.rest, file: filepath.Base(file)})
		case len(cases) == 0:
			t.Fatalf("%s:%d: no case yet", file, no)
		case verb == "want":
			c := &cases[len(cases)-1]
			c.wants = append(c.wants, readWant(t, line))
		default:
			c := &cases[len(cases)-1]
			c.lines = append(c.lines, line)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

func readWant(t *testing.T, line caseLine) want {
	t.Helper()
	w := line.words(t)
	if len(w) > 0 && w[0] == "lacks" {
		return want{id: w[0], members: append([]string{}, w[1:]...)}
	}
	if len(w) > 1 && w[0] == "odd" {
		return want{id: w[0], outcome: w[1], members: append([]string{}, w[2:]...)}
	}
	if len(w) < 2 {
		t.Fatalf("line %d: want CHECK OUTCOME [MEMBER...|REASON]", line.no)
	}
	out := want{id: w[0], outcome: w[1]}
	switch w[1] {
	case "violated", "warned", "note":
		out.members = w[2:]
	case "not-checked":
		out.reason = strings.Join(w[2:], " ")
	case "holds":
	default:
		t.Fatalf("line %d: no outcome %q", line.no, w[1])
	}
	return out
}

func allCases(t *testing.T) (out []checkCase) {
	t.Helper()
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases: ", err)
	}
	for _, f := range files {
		out = append(out, readCases(t, f)...)
	}
	return out
}

// TestCases: each case in testdata/cases builds a set of sources and says what checks make of it. README.md there has
// the words. What all checks say of each case stands in testdata/findings.txt; -update writes it anew, and its changes
// are to be read.
func TestCases(t *testing.T) {
	cases := allCases(t)
	said := newSayings(cases)
	t.Run("case", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.id(), func(t *testing.T) {
				t.Parallel()
				b := &builder{t: t, root: t.TempDir()}
				in := b.input(c.lines)
				for _, w := range c.wants {
					w.check(t, in)
				}
				said.add(t, c.id(), in)
			})
		}
	})
	said.compare(t)
}

func (c *checkCase) id() string { return strings.TrimSuffix(c.file, ".txt") + "/" + c.name }

// TestEveryCheckHasCases: each check is seen violated (or, where it only informs, with a note) and seen holding.
func TestEveryCheckHasCases(t *testing.T) {
	seen := map[string][]string{}
	for _, c := range allCases(t) {
		if len(c.wants) == 0 {
			t.Errorf("%s: case %q wants nothing", c.file, c.name)
		}
		for _, w := range c.wants {
			seen[w.id] = append(seen[w.id], w.outcome)
		}
	}
	for _, c := range check.All() {
		if elsewhere[string(c.ID)] != "" {
			continue
		}
		if !slices.Contains(seen[string(c.ID)], "holds") || !slices.Contains(seen[string(c.ID)], "violated") &&
			!slices.Contains(seen[string(c.ID)], "note") {
			t.Errorf("%s (%s): seen %v, want violated and holds", c.ID, c.Title, seen[string(c.ID)])
		}
	}
	none := &check.Input{}
	for _, c := range check.All() {
		if _, ok := c.Applies(none); ok {
			if r := c.Run(none); r.Outcome == check.Violated || len(r.Findings) > 0 {
				t.Errorf("%s of no sources: %s, %d findings", c.ID, r.Outcome, len(r.Findings))
			}
		}
	}
}

// elsewhere are checks whose input is not a set of files; their tests stand where the input comes from.
var elsewhere = map[string]string{
	"B08": "verify --against", "B09": "verify --drill", "B10": "verify of a chain of snapshots",
	"B11": "verify --max-age", "X10": "diagnose --confirm", "G01": "--server-log",
}

// check runs the check and compares.
func (w want) check(t *testing.T, in *check.Input) {
	t.Helper()
	switch w.id {
	case "lacks":
		w.checkLacks(t, in)
		return
	case "odd":
		w.checkOdd(t, in)
		return
	}
	r := run(t, in, w.id)
	var said []string
	rank := check.Warning.Rank()
	if w.outcome == "note" {
		rank = check.Info.Rank()
	}
	named := []string{}
	for _, f := range r.Findings {
		said = append(said, string(f.Severity)+": "+f.Title)
		if f.Severity.Rank() < rank {
			continue
		}
		if len(f.Evidence) == 0 {
			t.Errorf("%s: a finding without evidence: %s", w.id, f.Title)
		}
		for _, m := range f.Members {
			if !slices.Contains(named, m) {
				named = append(named, m)
			}
		}
	}
	slices.Sort(named)
	outcome := map[string]check.Outcome{"violated": check.Violated, "warned": check.Violated, "holds": check.Holds,
		"note": check.Holds, "not-checked": check.NotChecked}[w.outcome]
	switch {
	case r.Outcome != outcome:
		t.Errorf("%s: %s (%s) %q, want %s", w.id, r.Outcome, r.Reason, said, w.outcome)
	case w.outcome == "warned" && slices.ContainsFunc(r.Findings,
		func(f check.Finding) bool { return f.Severity.Rank() > check.Warning.Rank() }):
		t.Errorf("%s: %q, want warnings only", w.id, said)
	case w.outcome == "note" && len(r.Findings) == 0:
		t.Errorf("%s: nothing is said", w.id)
	case w.outcome == "holds" && len(named) > 0:
		t.Errorf("%s holds and names %v: %q", w.id, named, said)
	case len(w.members) > 0 && !slices.Equal(named, w.members):
		t.Errorf("%s names %v, want %v: %q", w.id, named, w.members, said)
	case w.reason != "" && !strings.Contains(r.Reason, w.reason):
		t.Errorf("%s was not checked because %q, want %q", w.id, r.Reason, w.reason)
	}
}

// checkLacks wants that the replay says of these members, and no other, that they lack the effect of committed entries.
func (w want) checkLacks(t *testing.T, in *check.Input) {
	t.Helper()
	named := []string{}
	for i, m := range in.Replay.Members {
		if m.Lacks > 0 {
			named = append(named, in.Members[i].Label())
		}
	}
	if !slices.Equal(named, w.members) {
		t.Errorf("%v lack effects, want %v", named, w.members)
	}
}

// checkOdd wants that the first finding of a check names these members as those that differ from a majority.
func (w want) checkOdd(t *testing.T, in *check.Input) {
	t.Helper()
	r := run(t, in, w.outcome)
	if len(r.Findings) == 0 || !slices.Equal(append([]string{}, r.Findings[0].Odd...), w.members) {
		t.Errorf("%s: %+v, want %v to differ from the majority", w.outcome, r.Findings, w.members)
	}
}

// builder makes the sources of a case.
type builder struct {
	t      *testing.T
	root   string
	script *clustertest.Script
	hands  *hands
	// names are the sources in the order in which they were made, paths where they lie.
	names []string
	paths map[string]string
	// backups are those taken as one, whatever the file looks like.
	backups map[string]bool
}

// input carries the lines out, then reads the sources.
func (b *builder) input(lines []caseLine) *check.Input {
	b.t.Helper()
	b.paths, b.backups = map[string]string{}, map[string]bool{}
	for _, l := range lines {
		b.do(l)
	}
	b.write()
	var specs []evidence.Spec
	var dirs []string
	for _, n := range b.names {
		specs = append(specs, evidence.Spec{Name: n, Where: b.paths[n], Backup: b.backups[n]})
		dirs = append(dirs, b.paths[n])
	}
	evidencetest.Unchanged(b.t, dirs...)
	return inputOfSpecs(b.t, specs)
}

func inputOfSpecs(t *testing.T, specs []evidence.Spec) *check.Input {
	t.Helper()
	ctx := context.Background()
	set, err := evidence.Open(ctx, specs, evidence.Options{Deep: true, List: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	in := &check.Input{Members: set.Members, MaxRows: 20, Single: len(specs) == 1}
	if in.Replay, err = replay.RunWithPlausibleIndex(ctx, set.Members, replay.Options{}); err != nil {
		t.Fatal(err)
	}
	if in.Diff, err = diff.Run(ctx, set.Members, in.Replay, diff.Options{}); err != nil {
		t.Fatal(err)
	}
	return in
}

// do carries one line out.
func (b *builder) do(l caseLine) {
	b.t.Helper()
	switch l.verb {
	case "incident":
		b.incident(l.rest)
	case "script":
		b.script = clustertest.NewScript(l.rest)
	case "auth", "step", "start", "leader", "member", "purged":
		b.scriptLine(l)
	case "hands":
		b.hands = newHands(b.t, b.root, l)
	case "only":
		b.write()
		b.names = l.words(b.t)
	default:
		if b.hands != nil && b.hands.do(l) {
			return
		}
		b.write()
		if !b.edit(l) {
			b.t.Fatalf("line %d: no verb %q", l.no, l.verb)
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
func (b *builder) scriptLine(l caseLine) {
	b.t.Helper()
	if b.script == nil {
		b.t.Fatalf("line %d: %s stands before script, or after the files were changed", l.no, l.verb)
	}
	switch l.verb {
	case "auth":
		b.script.EnableAuth()
	case "leader":
		term, err := strconv.ParseUint(l.rest, 10, 64)
		b.ok(l, err)
		b.script.Add(clustertest.Step{Empty: true, Term: term})
	case "start":
		b.script.Start(b.position(l, l.rest))
	case "purged":
		n, err := strconv.Atoi(l.rest)
		b.ok(l, err)
		b.script.Purged = n
	case "member":
		name, text, _ := strings.Cut(l.rest, " ")
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
func (b *builder) step(l caseLine) clustertest.Step {
	b.t.Helper()
	var st clustertest.Step
	rest := l.rest
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
			b.t.Fatalf("line %d: no word %s= in a step", l.no, name)
		}
	}
	st.Req = &etcdserverpb.InternalRaftRequest{}
	b.ok(l, prototext.Unmarshal([]byte(rest), protoadapt.MessageV2Of(st.Req)))
	return st
}

// position is that of a member: 0 for node1.
func (b *builder) position(l caseLine, name string) int {
	b.t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
	if err != nil || n < 1 {
		b.t.Fatalf("line %d: no member %q", l.no, name)
	}
	return n - 1
}

func (b *builder) ok(l caseLine, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("line %d: %s %s: %v", l.no, l.verb, l.rest, err)
	}
}
